/** The process that drives one engine for one turn, so that every engine is driven by a fresh one. */

import { openBullMq } from './bullmq.js';
import { openGraphileWorker } from './graphile-worker.js';
import { openOwn } from './own.js';
import { measure, type Outcome, type Peer, type Where, type Work } from './peer.js';
import { openPgBoss } from './pg-boss.js';

export type Engine = 'own' | 'pg-boss' | 'graphile-worker' | 'bullmq';

export interface Turn {
  readonly engine: Engine;
  readonly where: Where;
  readonly work: Work;
  /** Of `POST /instances` of this server. */
  readonly body: string;
}

export type TurnAnswer =
  | { readonly ok: true; readonly outcome: Outcome }
  | { readonly ok: false; readonly message: string };

const OPEN: Readonly<Record<Engine, (turn: Turn) => Promise<Peer>>> = {
  own: ({ where, work, body }) => openOwn(where, work, body),
  'pg-boss': ({ where, work }) => openPgBoss(where, work),
  'graphile-worker': ({ where, work }) => openGraphileWorker(where, work),
  bullmq: ({ where, work }) => openBullMq(where, work),
};

process.once('message', (turn: Turn) => {
  run(turn).then(
    (outcome) => answer({ ok: true, outcome }),
    (error: unknown) =>
      answer({ ok: false, message: error instanceof Error ? `${error.stack}` : String(error) }),
  );
});

async function run(turn: Turn): Promise<Outcome> {
  const peer = await OPEN[turn.engine](turn);
  const outcome = await measure(peer, turn.work);
  await peer.close();
  return outcome;
}

/** Whatever the engine left open: the turn is over. */
function answer(message: TurnAnswer): void {
  process.send?.(message, undefined, undefined, () => process.exit(0));
}
