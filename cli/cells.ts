/** The implementation of the commands for cells, which read and change the directory of the cluster. */

import { setTimeout as pause } from 'node:timers/promises';
import type { Cell, CellEngine } from '../schema/cell.js';
import { NAME_LENGTH_MAX } from '../schema/common.js';
import type {
  CellRow,
  CellState,
  Directory,
  MoveRow,
  PlacementRow,
} from '../src/cluster/directory.js';
import { cellNamed, cellsOf, ownerOf } from '../src/cluster/overview.js';
import { bucketOf, cellOfBucket } from '../src/cluster/routing.js';
import { schemaName } from '../src/server/config-values.js';
import { plainUrl, withDirectory } from './cluster.js';
import type { Given } from './command.js';
import { CommandError, EXIT, type ExitCode, usageError } from './exit.js';
import { addressOf } from './proxy/topology.js';
import type { Session } from './session.js';
import { ago, durationText } from './table.js';

const DIRECTORY_SCHEMA = 'cluster';

const PROGRAM = 'durable-workflow-engine';
/** Rows per query to the directory. */
const PAGE_ROWS = 1_000;
/** How many commands are printed. */
const MOVES_SHOWN_MAX = 20;
const LOOK_MS = 1_000;

/** @throws CommandError for an invalid name, or if the cell exists */
export async function createCell(session: Session, given: Given): Promise<undefined> {
  const { out } = session;
  const name = given.arg();
  try {
    schemaName(name, 'the cell name');
    if (name === DIRECTORY_SCHEMA)
      throw new Error(`${name} is reserved for the schema of the directory`);
  } catch (error) {
    throw usageError((error as Error).message);
  }
  const engines = enginesOf(given);
  const database_url = plainUrl(given.required('database'), '--database');
  const state = given.flag('closed') ? 'closed' : 'open';
  const create = async (directory: Directory) =>
    (await directory.createCell({ name, database_url, engines, state })) &&
    cellNamed(directory, name);
  const made = await withDirectory(session, create, given, true);
  if (made === undefined) {
    throw new CommandError(
      'refused',
      `cell ${name} already exists`,
      `${PROGRAM} cells status ${name} shows its details.`,
    );
  }
  if (out.isJson) out.json(made);
  else {
    out.line(`Cell ${name} is ${state}.`);
    out.note(`Start its engines with ENGINE_DB_SCHEMA=${name} and ENGINE_CLUSTER_URL.`);
    if (state === 'closed') out.note(`Then open it to tenants: ${PROGRAM} cells open ${name}`);
    else
      out.note('New tenants are assigned to it from now on; they wait until an engine serves it.');
  }
  return undefined;
}

/** Validated as for proxy configurations, since one bad address would make all of them invalid. @throws CommandError */
function enginesOf(given: Given): readonly string[] {
  const engines = given.texts('engine');
  for (const address of engines) {
    try {
      addressOf(address, 'an engine');
    } catch {
      throw usageError(`--engine takes host:port, not ${address}`);
    }
  }
  return engines;
}

/** @throws CommandError if there is nothing to change, or no such cell */
export async function changeCell(session: Session, given: Given): Promise<undefined> {
  const { out } = session;
  const name = given.arg();
  const engines = enginesOf(given);
  const database = given.text('database');
  if (engines.length === 0 && database === undefined) {
    throw usageError('nothing to change', 'Use --engine or --database.');
  }
  const changed = {
    ...(engines.length > 0 && { engines }),
    ...(database !== undefined && { database_url: plainUrl(database, '--database') }),
  };
  const change = async (directory: Directory) =>
    (await directory.changeCell(name, changed)) && cellNamed(directory, name);
  const cell = await withDirectory(session, change, given);
  if (cell === undefined) throw missing(name);
  if (out.isJson) out.json(cell);
  else out.line(`Cell ${name} was updated.`);
  return undefined;
}

export function allCells(session: Session, given: Given): Promise<Cell[]> {
  return withDirectory(session, cellsOf, given);
}

export async function showCells(session: Session, given: Given): Promise<undefined> {
  const { out } = session;
  const name = given.args[0] as string | undefined;
  const cells = await allCells(session, given);
  const shown = name === undefined ? cells : cells.filter((cell) => cell.name === name);
  if (name !== undefined && shown.length === 0) throw missing(name);
  if (out.isJson) out.json(name === undefined ? shown : shown[0]);
  else for (const line of shown.flatMap((cell) => linesOf(cell, out.place.now))) out.line(line);
  return undefined;
}

function linesOf(cell: Cell, now: number): string[] {
  const { name, state, tenants, moves_under_way, database_url, engines } = cell;
  const isServed = ownerOf(cell) !== undefined;
  return [
    `${name}: ${state}, ${countOf(tenants, 'tenant')}, ${countOf(moves_under_way, 'move')} under way`,
    `  ${database_url}`,
    ...engines.map((engine) => `  ${engineText(engine, now)}`),
    ...(isServed ? [] : ['  no engine serves it']),
  ];
}

function engineText(engine: CellEngine, now: number): string {
  const { address, role, version, lag_ms, seen_at, is_silent } = engine;
  const lag =
    lag_ms === null ? '' : `, lag ${lag_ms < 1_000 ? `${lag_ms}ms` : durationText(lag_ms)}`;
  const silent = is_silent ? ', presumed stopped' : '';
  return `${role} ${address}, ${version}${lag}, last seen ${ago(seen_at, now)}${silent}`;
}

export async function setState(
  session: Session,
  given: Given,
  state: CellState,
): Promise<undefined> {
  const { out } = session;
  const name = given.arg();
  const change = async (directory: Directory) =>
    (await directory.changeCell(name, { state })) && cellNamed(directory, name);
  const cell = await withDirectory(session, change, given);
  if (cell === undefined) throw missing(name);
  if (out.isJson) out.json(cell);
  else out.line(`Cell ${name} is ${state}.`);
  return undefined;
}

// ---------------------------------------------------------------- draining

interface Leaving {
  readonly tenant_id: string;
  readonly to: string;
}

/** @throws CommandError if there is no target cell, or `--wait` exceeds `--timeout` */
export async function drainCell(session: Session, given: Given): Promise<undefined> {
  const { out } = session;
  const name = given.arg();
  await withDirectory(
    session,
    async (directory) => {
      const open = await targets(directory, name, given.text('to'));
      if ((await directory.changeCell(name, { state: 'draining' })) === undefined)
        throw missing(name);
      const placed = await placementsIn(directory, name);
      const leaving = placed.map(({ tenant_id }): Leaving => {
        return { tenant_id, to: cellOfBucket(bucketOf(tenant_id), open) as string };
      });
      if (out.isJson) out.json({ cell: name, state: 'draining', tenants: leaving });
      else tellDraining(session, given, name, leaving);
      if (given.flag('wait') && leaving.length > 0) await untilEmpty(session, directory, name);
    },
    given,
  );
  return undefined;
}

/** The cells that its tenants may move to. */
async function targets(
  directory: Directory,
  name: string,
  to: string | undefined,
): Promise<string[]> {
  const cells = await directory.cells();
  if (!cells.some((cell) => cell.name === name)) throw missing(name);
  if (to !== undefined) {
    if (to === name) throw usageError('--to names the cell that is being drained');
    if (!cells.some((cell) => cell.name === to)) throw missing(to);
    return [to];
  }
  const isTarget = (cell: CellRow) => cell.state === 'open' && cell.name !== name;
  const open = cells.filter(isTarget).map((cell) => cell.name);
  if (open.length > 0) return open;
  throw new CommandError('refused', 'no other cell is open, so its tenants cannot be moved');
}

function tellDraining(
  { out }: Session,
  given: Given,
  name: string,
  leaving: readonly Leaving[],
): void {
  out.line(`Cell ${name} is draining; ${countOf(leaving.length, 'tenant')} left.`);
  const cluster = given.text('cluster');
  const option = cluster === undefined ? '' : ` --cluster ${shellWord(cluster)}`;
  for (const { tenant_id, to } of leaving.slice(0, MOVES_SHOWN_MAX)) {
    out.line(`  ${PROGRAM} tenants move ${shellWord(tenant_id)} --to ${to}${option}`);
  }
  const more = leaving.length - MOVES_SHOWN_MAX;
  if (more > 0) out.note(`And ${more.toLocaleString('en')} more: --json prints all of them.`);
  if (leaving.length === 0) out.note(`Stop its engines, then: ${PROGRAM} cells remove ${name}`);
}

/** Quoted as one word for a POSIX shell. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

async function untilEmpty(session: Session, directory: Directory, name: string): Promise<void> {
  const { out, options, signal } = session;
  const giveUpAt = performance.now() + (options.timeoutMs ?? Number.POSITIVE_INFINITY);
  for (;;) {
    const left = (await directory.counts()).get(name)?.tenants ?? 0;
    out.progress(`${countOf(left, 'tenant')} left`);
    if (left === 0) break;
    if (performance.now() > giveUpAt) {
      throw new CommandError('timedOut', `${countOf(left, 'tenant')} are still in ${name}`);
    }
    await pause(LOOK_MS, undefined, { signal });
  }
  out.endProgress();
}

// ---------------------------------------------------------------- removing

const WHY_KEPT = {
  'has tenants': 'it has tenants; cells drain prints the commands that move them',
  'has engines': 'one of its engines was seen recently; stop its engines first',
  'is moved': 'a tenant is being moved from or to it',
} as const;

export async function removeCell(session: Session, given: Given): Promise<ExitCode> {
  const { out, asker } = session;
  const name = given.arg();
  if (!given.flag('yes')) {
    if (!asker.isThere) {
      throw usageError(
        `${name} would be removed, and there is no terminal to ask for confirmation`,
        'Use --yes to confirm.',
      );
    }
    await asker.confirm(`Cell ${name} will be removed from the directory. Continue?`);
  }
  const why = await withDirectory(session, (directory) => directory.removeCell(name), given);
  if (why === 'missing') throw missing(name);
  if (why !== undefined) throw new CommandError('refused', `${name} stays: ${WHY_KEPT[why]}`);
  if (out.isJson) out.json({ removed: name });
  else out.line(`Cell ${name} was removed; its schema is still in its database.`);
  return EXIT.ok;
}

// ---------------------------------------------------------------- tenants

/** @throws CommandError if the tenant is assigned to another cell */
export async function placeTenant(session: Session, given: Given): Promise<undefined> {
  const { out } = session;
  const tenant = given.arg().trim();
  if (tenant === '' || tenant.length > NAME_LENGTH_MAX) {
    throw usageError(`a tenant name has 1 to ${NAME_LENGTH_MAX} characters`);
  }
  const cell = given.required('cell');
  const placed = await withDirectory(
    session,
    async (directory) => {
      if ((await directory.cell(cell)) === undefined) throw missing(cell);
      const settled = (await directory.settle([tenant], cell, 'hand')).get(tenant);
      if (settled !== cell) {
        throw new CommandError(
          'refused',
          `${tenant} is already in cell ${settled}`,
          `Move it: ${PROGRAM} tenants move ${shellWord(tenant)} --to ${cell}`,
        );
      }
      return directory.placement(tenant);
    },
    given,
  );
  if (out.isJson) out.json(placed);
  else out.line(`${tenant} is in cell ${cell}.`);
  return undefined;
}

/** @param limit maximum number of rows */
export function placements(session: Session, given: Given, limit: number): Promise<PlacementRow[]> {
  const cell = given.text('cell');
  return withDirectory(session, (directory) => placementsIn(directory, cell, limit), given);
}

async function placementsIn(
  directory: Directory,
  cell: string | undefined,
  limit = Number.POSITIVE_INFINITY,
): Promise<PlacementRow[]> {
  return inPages(limit, (last: PlacementRow | undefined, rows) =>
    directory.placements({ after: last?.tenant_id ?? '', limit: rows, cell }),
  );
}

/** Newest first. @param limit maximum number of rows */
export function moves(session: Session, given: Given, limit: number): Promise<MoveRow[]> {
  const isUnderWay = given.flag('under-way');
  return withDirectory(
    session,
    (directory) =>
      inPages(limit, (last: MoveRow | undefined, rows) =>
        directory.moves({ before: last?.id, limit: rows, isUnderWay }),
      ),
    given,
  );
}

/** @param page reads the rows after the last row of the previous page */
async function inPages<Row>(
  limit: number,
  page: (last: Row | undefined, rows: number) => Promise<readonly Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  while (rows.length < limit) {
    const asked = Math.min(PAGE_ROWS, limit - rows.length);
    const found = await page(rows.at(-1), asked);
    rows.push(...found);
    if (found.length < asked) break;
  }
  return rows;
}

const missing = (name: string) =>
  new CommandError(
    'notFound',
    `no cell named ${name} in the cluster`,
    `${PROGRAM} cells list shows the existing cells.`,
  );

const countOf = (count: number, what: string) =>
  `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;
