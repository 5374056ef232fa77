/** The steps of a growth, and the checks of what it is told by. Pure. */

/** Powers of ten from a thousand on, and the number itself last. */
export function stepsTo(instances: number): readonly number[] {
  const steps: number[] = [];
  for (let step = 1_000; step < instances; step *= 10) steps.push(step);
  return [...steps, instances];
}

/** A quantity with its target, as a remark. */
export function verdict(what: string, value: number, target: number, unit: string): string {
  const reached = value <= target ? 'reached' : 'missed';
  return `${what}: ${value}${unit}, target ${target}${unit}: ${reached}`;
}
