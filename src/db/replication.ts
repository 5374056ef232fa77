/**
 * Whether what is acknowledged is on a replica, too, so that a fail-over to it loses nothing. Postgres decides that by
 * its settings; the engine looks at them, says what is missing, and where it is told so does not start without
 * (docs/operate/availability.md).
 */

import { ConfigError } from '../base/config-error.js';

/** `auto`: looked at where there are replicas. `required`: the engine does not start without it. */
export type SynchronousMode = 'auto' | 'required' | 'off';

/** How a server replicates; read by `REPLICATION_FACTS`. */
export interface Replication {
  /** `synchronous_standby_names`. */
  readonly names: string;
  /** `synchronous_commit`, as the role of the session has it. */
  readonly commit: string;
  /** Those that are connected. */
  readonly replicas: number;
}

/** Members of a select. Whoever may not see more of a replica sees that it is there. */
export const REPLICATION_FACTS = `
  current_setting('synchronous_standby_names') as names,
  current_setting('synchronous_commit') as commit,
  (select count(*) from pg_stat_replication)::int as replicas`;

/** Waits for the disk of the server alone. The writer turns `off` into `on`, and leaves this as it is. */
const LOCAL = 'local';

/** Why a commit that was acknowledged may be on no replica; undefined: it is on one. */
export function lackingReplication({ names, commit, replicas }: Replication): string | undefined {
  if (names === '' && replicas === 0) return 'there is no replica';
  if (names === '') return 'synchronous_standby_names is empty';
  if (commit === LOCAL) return 'synchronous_commit is local for the role of the engine';
  return undefined;
}

/**
 * Why a fail-over would lose what was acknowledged, if it would and may be warned of.
 * @throws ConfigError when it is required, and lacking
 */
export function judgeReplication(found: Replication, mode: SynchronousMode): string | undefined {
  const lacking = lackingReplication(found);
  if (lacking !== undefined && mode === 'required') {
    throw new ConfigError(
      `ENGINE_DB_SYNCHRONOUS is required, and replication is not synchronous: ${lacking}; ` +
        'docs/operate/availability.md has the settings',
    );
  }
  return mode === 'auto' && found.replicas > 0 ? lacking : undefined;
}
