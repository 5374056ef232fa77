/** Moves a tenant to another cell, or continues an interrupted move (docs/operate/moving-tenants.md). */

import { STORE } from '../actors/shard/store.js';
import type { Directory, MoveRow } from '../src/cluster/directory.js';
import { MoveError, type Step } from '../src/cluster/move-plan.js';
import { TenantMover } from '../src/cluster/move-steps.js';
import { Moves } from '../src/cluster/moves.js';
import { tenantTables } from '../src/cluster/tenant-rows.js';
import { withDirectory } from './cluster.js';
import type { Given } from './command.js';
import { CommandError, EXIT, type ExitCode, usageError } from './exit.js';
import type { Session } from './session.js';

/** How long an engine may be silent. */
const PATIENCE_MS = 60_000;

/** Progress messages; short steps have none. */
const TOLD: Readonly<Partial<Record<Step, string>>> = {
  'await-source': 'waiting for the engine of its cell to release it',
  'await-target': 'waiting for the engine of the other cell',
  copy: 'copying and comparing its rows',
  'await-admission': 'waiting for the other cell to serve it',
  'await-readmission': 'waiting for its cell to serve it again',
  'clear-source': 'deleting the old rows',
  'clear-target': 'deleting the copied rows',
};

/** @throws CommandError */
export function moveTenant(session: Session, given: Given): Promise<ExitCode> {
  const tenant = given.arg().trim();
  return withDirectory(
    session,
    async (directory) => {
      const moves = await Moves.open(directory.url);
      try {
        const begun = await beginning(directory, moves, given, tenant);
        if (begun === undefined) return toldOfHome(session, directory, tenant);
        const ended = await carriedOut(session, directory, moves, begun);
        return told(session, ended, given);
      } catch (error) {
        if (error instanceof MoveError) throw new CommandError('refused', error.message);
        throw error;
      } finally {
        await moves.close();
      }
    },
    given,
  );
}

/**
 * The move in progress, or a new one; undefined: the tenant is in the cell already, perhaps by a move that was
 * interrupted at the end.
 */
async function beginning(
  directory: Directory,
  moves: Moves,
  given: Given,
  tenant: string,
): Promise<MoveRow | undefined> {
  const to = given.text('to');
  const isGivingUp = given.flag('give-up');
  const move = await moves.underWay(tenant);
  if (isGivingUp) {
    if (move === undefined) throw new CommandError('notFound', `${tenant} is not being moved`);
    if (move.state !== 'given_up') await moves.giveUp(move.id);
    return move;
  }
  if (move === undefined) {
    if (to === undefined) throw usageError('--to is required');
    const home = await directory.placement(tenant);
    return home?.cell === to ? undefined : moves.begin(tenant, to);
  }
  if (to === undefined || to === move.to_cell) return move;
  throw new CommandError(
    'refused',
    `${tenant} is already being moved to ${move.to_cell}`,
    `Finish that move with --to ${move.to_cell}, or undo it with --give-up.`,
  );
}

async function carriedOut(
  { out, options }: Session,
  directory: Directory,
  moves: Moves,
  move: MoveRow,
): Promise<MoveRow> {
  const urlOf = async (name: string) => {
    const cell = await directory.cell(name);
    if (cell === undefined)
      throw new CommandError('notFound', `no cell named ${name} in the cluster`);
    return cell.database_url;
  };
  const mover = new TenantMover(move, {
    tables: tenantTables(STORE),
    moves,
    sourceUrl: await urlOf(move.from_cell),
    targetUrl: await urlOf(move.to_cell),
    onStep: (step) => {
      const text = TOLD[step];
      if (text !== undefined) out.progress(text);
    },
    patienceMs: options.timeoutMs ?? PATIENCE_MS,
  });
  try {
    return await mover.run();
  } catch (error) {
    const { message } = error as Error;
    await moves.fail(move.id, message).catch(() => undefined);
    if (error instanceof CommandError || error instanceof MoveError) throw error;
    throw new CommandError(
      'unreachable',
      `the move was interrupted: ${message}`,
      'Run the same command again to continue.',
    );
  } finally {
    out.endProgress();
  }
}

async function toldOfHome(
  { out }: Session,
  directory: Directory,
  tenant: string,
): Promise<ExitCode> {
  const home = await directory.placement(tenant);
  if (out.isJson) out.json(home);
  else out.line(`${tenant} is in cell ${home?.cell}.`);
  return EXIT.ok;
}

function told({ out }: Session, move: MoveRow, given: Given): ExitCode {
  const { tenant_id, from_cell, to_cell, state } = move;
  if (out.isJson) out.json(move);
  else if (state === 'done') out.line(`${tenant_id} is now in cell ${to_cell}.`);
  else out.line(`${tenant_id} stays in cell ${from_cell}.`);
  return state === 'done' || given.flag('give-up') ? EXIT.ok : EXIT.failed;
}
