/** One thing in the forms that people pass on: a command, a request, a link, and Markdown for an incident channel. Pure. */

/** What is copied. Absent forms are not offered. */
export interface Copied {
  /** The arguments of the command line. */
  readonly command?: readonly string[];
  /** Below `/api/v1`. */
  readonly request: string;
  /** The page, below the base path of the dashboard. */
  readonly page: string;
  readonly note: Note;
}

/** A heading, facts, and the reason of a failure. */
export interface Note {
  readonly title: string;
  readonly facts: readonly (readonly [name: string, value: string] | false)[];
  readonly reason?: string | undefined;
}

export interface Place {
  /** The URL of the engine, without `/api/v1`. */
  readonly engine: string;
  /** The URL of the dashboard in this tenant. */
  readonly dashboard: string;
  readonly tenant: string | undefined;
  readonly needsKey: boolean;
}

export interface CopyForm {
  readonly label: string;
  readonly text: string;
}

export function formsOf({ command, request, page, note }: Copied, place: Place): CopyForm[] {
  const link = place.dashboard + page;
  return [
    { label: 'Link', text: link },
    { label: 'Markdown', text: markdownOf(note, link) },
    ...(command ? [{ label: 'CLI command', text: commandOf(command, place) }] : []),
    { label: 'curl', text: curlOf(request, place) },
  ];
}

function commandOf(args: readonly string[], { engine, tenant }: Place): string {
  const connection = ['--url', engine, ...(tenant === undefined ? [] : ['--tenant', tenant])];
  return ['durable-workflow-engine', ...[...args, ...connection].map(quoted)].join(' ');
}

/** The key is left to the shell, so that it is never in a text that is passed on. */
function curlOf(request: string, { engine, tenant, needsKey }: Place): string {
  return [
    'curl -sS --fail-with-body',
    ...(needsKey ? ['-H "x-api-key: $KEY"'] : []),
    ...(tenant === undefined ? [] : [`-H ${quoted(`x-tenant-id: ${tenant}`)}`]),
    quoted(`${engine}/api/v1${request}`),
  ].join(' ');
}

/** For shells of the POSIX kind. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Longer reasons are cut: a channel wants the beginning, and the link leads to the rest. */
const REASON_CHARACTERS = 1_000;

function markdownOf({ title, facts, reason }: Note, link: string): string {
  const rows = facts.filter((fact) => fact !== false);
  return [
    `**${escaped(title)}**`,
    '',
    ...rows.map(([name, value]) => `- ${name}: ${code(value)}`),
    `- Link: <${link}>`,
    ...(reason === undefined ? [] : ['', fenced(cut(reason))]),
  ].join('\n');
}

function cut(text: string): string {
  return text.length > REASON_CHARACTERS ? `${text.slice(0, REASON_CHARACTERS)}…` : text;
}

/** Names and messages come from users: whatever they contain is shown, not interpreted. */
function code(text: string): string {
  const ticks = '`'.repeat(longestTicks(text) + 1);
  const gap = /^`|`$/.test(text) ? ' ' : '';
  return ticks + gap + text.replaceAll(/\s+/g, ' ') + gap + ticks;
}

function fenced(text: string): string {
  const fence = '`'.repeat(Math.max(3, longestTicks(text) + 1));
  return `${fence}\n${text}\n${fence}`;
}

function longestTicks(text: string): number {
  return Math.max(0, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
}

function escaped(text: string): string {
  return text.replaceAll(/[\\`*_[\]<>~|]/g, '\\$&').replaceAll(/\s+/g, ' ');
}
