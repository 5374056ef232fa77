/** The steps of a growth. Pure. */

/** Powers of ten from a thousand on, and the number itself last. */
export function stepsTo(instances: number): readonly number[] {
  const steps: number[] = [];
  for (let step = 1_000; step < instances; step *= 10) steps.push(step);
  return [...steps, instances];
}
