/**
 * A strict reader of the text format 0.0.4 of Prometheus. What a real scraper would refuse, or would
 * take for something else than was meant, is an error here: metrics without a type or help, families
 * in pieces, samples twice, histograms whose buckets go down or do not end in the count.
 */

export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'untyped';

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
  readonly samples: readonly Sample[];
}

export interface Exposition {
  readonly families: ReadonlyMap<string, Family>;
  /** The one sample of this name without labels, such as a counter or `…_count`. @throws Error */
  value(name: string): number;
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const HELP = new RegExp(`^# HELP (${NAME}) (.+)$`);
const TYPE = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram|summary|untyped)$`);
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)(?: -?\\d+)?$`);
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/;
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

/** @throws Error that quotes the line which is wrong */
export function parseExposition(text: string): Exposition {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const reader = new Reader();
  for (const line of text.slice(0, -1).split('\n')) reader.take(line);
  return reader.finish();
}

interface OpenFamily {
  readonly name: string;
  help: string | undefined;
  type: MetricType | undefined;
  readonly samples: Sample[];
}

class Reader {
  readonly #families = new Map<string, OpenFamily>();
  readonly #seen = new Set<string>();
  #present: OpenFamily | undefined;

  take(line: string): void {
    if (line.trim() === '') return;
    const help = HELP.exec(line);
    const type = TYPE.exec(line);
    if (help !== null) this.#describe(line, help[1]!, { help: help[2]! });
    else if (type !== null) this.#describe(line, type[1]!, { type: type[2] as MetricType });
    else if (!/^# (?!HELP|TYPE)/.test(line)) this.#sample(line);
  }

  finish(): Exposition {
    const families = new Map<string, Family>();
    for (const { name, help, type, samples } of this.#families.values()) {
      if (help === undefined || type === undefined) throw new Error(`${name} has no help or type`);
      if (samples.length === 0) throw new Error(`${name} has no samples`);
      const family = { name, help, type, samples };
      if (type === 'histogram') checkHistogram(family);
      families.set(name, family);
    }
    const values = new Map<string, number>();
    for (const { samples } of families.values()) {
      for (const { name, labels, value } of samples) {
        if (Object.keys(labels).length === 0) values.set(name, value);
      }
    }
    return {
      families,
      value(name) {
        const value = values.get(name);
        if (value === undefined) throw new Error(`there is no sample ${name}`);
        return value;
      },
    };
  }

  #describe(line: string, name: string, facts: { help?: string; type?: MetricType }): void {
    let family = this.#present;
    if (family?.name !== name) {
      if (this.#families.has(name)) throw new Error(`in two pieces: ${line}`);
      family = { name, help: undefined, type: undefined, samples: [] };
      this.#families.set(name, family);
      this.#present = family;
    }
    const isTwice =
      (facts.help !== undefined && family.help !== undefined) ||
      (facts.type !== undefined && family.type !== undefined);
    if (isTwice || family.samples.length > 0) throw new Error(`late or twice: ${line}`);
    family.help ??= facts.help;
    family.type ??= facts.type;
  }

  #sample(line: string): void {
    const match = SAMPLE.exec(line);
    if (match === null) throw new Error(`not a line of the format: ${line}`);
    const [, name = '', labelText, number = ''] = match;
    const family = this.#present;
    if (family?.type === undefined || !belongs(name, family)) {
      throw new Error(`not under its type: ${line}`);
    }
    const labels = labelsOf(labelText, line);
    const identity = JSON.stringify([name, Object.entries(labels).sort()]);
    if (this.#seen.has(identity)) throw new Error(`twice: ${line}`);
    this.#seen.add(identity);
    const value = numberOf(number);
    if (value === undefined) throw new Error(`not a number: ${line}`);
    if (family.type === 'counter' && !(value >= 0)) throw new Error(`below 0: ${line}`);
    family.samples.push({ name, labels, value });
  }
}

function belongs(name: string, family: OpenFamily): boolean {
  if (family.type !== 'histogram') return name === family.name;
  return ['_bucket', '_sum', '_count'].some((suffix) => name === family.name + suffix);
}

function labelsOf(text: string | undefined, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  let rest = text ?? '';
  while (rest !== '') {
    const match = LABEL.exec(rest);
    if (match === null) throw new Error(`bad labels: ${line}`);
    const [whole, name = '', value = ''] = match;
    if (name in labels) throw new Error(`a label twice: ${line}`);
    labels[name] = value.replace(/\\(.)/g, (_, character: string) =>
      character === 'n' ? '\n' : character,
    );
    rest = rest.slice(whole.length);
  }
  return labels;
}

function numberOf(text: string): number | undefined {
  if (text === 'NaN') return Number.NaN;
  if (/^[+-]?Inf$/.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  return NUMBER.test(text) ? Number(text) : undefined;
}

/** Of a histogram without labels of its own. */
function checkHistogram({ name, samples }: Family): void {
  const complain = (what: string) => new Error(`histogram ${name}: ${what}`);
  const one = (suffix: string) => {
    const found = samples.filter((sample) => sample.name === name + suffix);
    if (found.length !== 1) throw complain(`${found.length} samples ${suffix}`);
    return found[0]!.value;
  };
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
  let bound = Number.NEGATIVE_INFINITY;
  let count = 0;
  for (const { labels, value } of buckets) {
    const le = numberOf(labels.le ?? '');
    if (le === undefined || !(le > bound)) throw complain(`the bound ${labels.le}`);
    if (value < count) throw complain(`fewer at ${labels.le} than below`);
    bound = le;
    count = value;
  }
  if (bound !== Number.POSITIVE_INFINITY) throw complain('no bucket for +Inf');
  if (one('_count') !== count) throw complain('the count is not that of the last bucket');
  if (!(one('_sum') >= 0)) throw complain('the sum');
}
