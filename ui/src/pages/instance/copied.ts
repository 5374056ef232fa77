/** What *Copy as* passes on about an instance. Pure. */

import type { Copied } from '../../lib/copy-as.ts';
import type { Run } from './run.ts';

export function copiedOf({ instance, named }: Pick<Run, 'instance' | 'named'>): Copied {
  const { id, tenant_id, namespace, state, failure } = instance;
  return {
    command: ['instances', 'explain', id],
    request: `/instances/${id}`,
    page: `/instances/${id}`,
    note: {
      title: `${named?.name ?? 'Instance'} · ${state}`,
      facts: [
        ['Instance', id],
        ['Tenant', tenant_id],
        named !== undefined && ['Sequence', `${named.name} version ${named.version}, ${namespace}`],
        ...(failure === null
          ? []
          : [
              failure.path !== null && (['Failed at', failure.path] as const),
              ['Code', failure.code] as const,
              ['When', failure.at] as const,
            ]),
      ],
      reason: failure?.message,
    },
  };
}
