/**
 * Checks whether acknowledged commits are on a replica, so that a fail-over loses nothing. The settings of
 * Postgres decide that: the engine reports what is missing, and can refuse to start
 * (docs/operate/availability.md).
 */

import { ConfigError } from '../base/config-error.js';

/** `auto`: checked if there are replicas. `required`: the engine does not start without. */
export type SynchronousMode = 'auto' | 'required' | 'off';

export interface Replication {
  readonly names: string;
  readonly commit: string;
  readonly replicas: number;
}

/** Columns of a select. A role with few rights sees only that replicas exist. */
export const REPLICATION_FACTS = `
  current_setting('synchronous_standby_names') as names,
  current_setting('synchronous_commit') as commit,
  (select count(*) from pg_stat_replication)::int as replicas`;

/** Waits for the local disk only. The writer replaces `off`, and keeps this value. */
const LOCAL = 'local';

export function lackingReplication({ names, commit, replicas }: Replication): string | undefined {
  if (names === '' && replicas === 0) return 'there is no replica';
  if (names === '') return 'synchronous_standby_names is empty';
  if (commit === LOCAL) return 'synchronous_commit is local for the role of the engine';
  return undefined;
}

/** The reason for a warning. @throws ConfigError when replication is required and missing */
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
