/** Commands for tenants: their placement in the cells of a cluster, and the rights of the caller. */

import type { Tenant } from '../../client/src/index.js';
import type { PlacementRow } from '../../src/cluster/directory.js';
import { CLUSTER_OPTION, isInCluster } from '../cluster-option.js';
import { type Command, listing, showing } from '../command.js';
import { ago } from '../table.js';

const HOW: Readonly<Record<PlacementRow['placed_by'], string>> = {
  hand: 'assigned manually',
  hash: 'assigned by hash',
  move: 'moved',
  found: 'existing tenant',
};

const WORDS = {
  name: 'tenants list',
  summary:
    'List tenants with data by name (needs the root key); in a cluster, list tenants with their cells.',
  options: [CLUSTER_OPTION, { flags: '--cell <name>', about: 'Only tenants of this cell.' }],
} as const;

const OF_A_SERVER = listing<Tenant>({
  ...WORDS,
  columns: [{ head: 'TENANT', text: ({ tenant_id }) => tenant_id, isWhole: true }],
  ask: ({ client }, _given, limit) => client.tenants.list({ limit }),
});

const OF_A_CLUSTER = listing<PlacementRow>({
  ...WORDS,
  columns: [
    { head: 'TENANT', text: ({ tenant_id }) => tenant_id, isWhole: true },
    { head: 'CELL', text: ({ cell }) => cell },
    { head: 'HOW', text: ({ placed_by }) => HOW[placed_by] },
    { head: 'SINCE', text: ({ placed_at }, now) => ago(placed_at, now) },
  ],
  ask: async (session, given, _page, most) =>
    (await import('../cells.js')).placements(session, given, most),
});

export const TENANT_COMMANDS: readonly Command[] = [
  {
    ...OF_A_CLUSTER,
    run: async (session, given) => {
      const isOfCluster = isInCluster(session, given) || given.text('cell') !== undefined;
      return (isOfCluster ? OF_A_CLUSTER : OF_A_SERVER).run(session, given);
    },
  },
  {
    name: 'tenants place',
    summary: 'Assign a new tenant to a cell.',
    args: [{ name: 'tenant', about: 'The name of the tenant.' }],
    options: [{ flags: '--cell <name>', about: 'The cell.' }, CLUSTER_OPTION],
    run: async (session, given) => (await import('../cells.js')).placeTenant(session, given),
  },
  {
    name: 'tenants move',
    summary:
      'Move a tenant to another cell of the cluster; run it again to continue after an interruption.',
    args: [{ name: 'tenant', about: 'The name of the tenant.' }],
    options: [
      { flags: '--to <name>', about: 'The target cell.' },
      { flags: '--give-up', about: 'Undo the move, if the tenant has not switched yet.' },
      CLUSTER_OPTION,
    ],
    run: async (session, given) => (await import('../tenant-move.js')).moveTenant(session, given),
  },
  showing({
    name: 'whoami',
    summary: 'Show the rights and the tenant of the key.',
    ask: ({ client }) => client.whoami(),
  }),
];
