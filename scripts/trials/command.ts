/** What the commands of the long runs share: numbers among their arguments, and lines of output. */

export function whole(name: string, value: string): number {
  if (/^\d{1,10}$/.test(value)) return Number(value);
  return refuse(name, 'a whole number', value);
}

/** Ends the process. */
export function refuse(name: string, wanted: string, value: string): never {
  process.stderr.write(`${name} must be ${wanted}, not "${value}"\n`);
  process.exit(2);
}

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
