/** Time that work takes of the processor, which no other load on the machine makes longer. */

/** Milliseconds of the processor that `work` takes, with whatever else this process does meanwhile. */
export function cpuMsOf(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
