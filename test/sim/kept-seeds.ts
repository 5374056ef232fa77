/**
 * Seeds that once failed, with what they found. They are run before all others. A seed stands for its
 * run only as long as the simulation draws the same numbers: who changes what is drawn, or in which
 * order, looks for a new seed by putting the mistake back (see `docs/simulation.md`).
 */

export interface KeptSeed {
  readonly seed: number;
  readonly found: string;
  /** In this form. */
  readonly isBrief?: true;
}

export const KEPT_SEEDS: readonly KeptSeed[] = [
  {
    seed: 14,
    found:
      'an instance to be recovered, whose rows could not be read at once, was never looked at again',
  },
  {
    seed: 39,
    found: 'a slot of a concurrency key was not free again when its instance was not heard leaving',
  },
  {
    seed: 43,
    found: 'a task that was committed by a writer that died at once was offered to nobody',
  },
  { seed: 1193, found: 'a sequence that was read while it was deleted was used for new instances' },
  {
    seed: 1364,
    found:
      'a shard refused instances of a sequence for ever when the catalog died as it deleted it',
  },
  ...[
    { seed: 205, found: 'a retry behind a catch list ran the try list again' },
    { seed: 992, found: 'an item of a for_each saw what an item beside it had merged' },
    { seed: 109, found: 'what items had merged stood in the order of their ends' },
    { seed: 167, found: 'a pass of a loop saw an output that was not its own' },
    { seed: 17, found: 'blocks behind a saga saw the error that it had dealt with' },
    { seed: 10, found: 'compensations behind a cancel were not told of it' },
    { seed: 200, found: 'a retry ran a saga again, one of whose compensations was owed' },
    { seed: 1546, found: 'an instance was cancelled though a hook of that had failed' },
    { seed: 352, found: 'a further try of a call had another idempotency key' },
    { seed: 55, found: 'a retry of a parent started another child beside the one that had failed' },
    {
      seed: 112,
      found: 'a parent waited for ever for a child that had failed again for its old reason',
    },
    { seed: 256, found: 'an instance completed with the error of a loser of a race' },
    {
      seed: 2229,
      found: 'new instances went to a version whose deprecation no shard had been told',
    },
    { seed: 284178991, found: 'a sequence that was found twice gave an ended child another timer' },
    {
      seed: 337,
      found: 'an order to cancel whose first read failed came too late to a short instance',
    },
    { seed: 78, found: 'a wait was answered from a state whose commit was lost' },
  ].map((one) => ({ ...one, isBrief: true as const })),
  { seed: 200701, found: 'a failed instance kept its timer after a refused result of its hook' },
];
