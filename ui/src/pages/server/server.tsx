/** What the server reports about itself: versions, readiness and API addresses. */

import { useQuery } from '@tanstack/react-query';
import { EngineError } from 'durable-workflow-engine-client';
import { ENGINE_URL, useEngine, useReady } from '../../api/engine.tsx';
import { Badge } from '../../components/badge.tsx';
import { messageOf } from '../../components/error-box.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Facts, Page, Panel } from '../../components/page.tsx';

export default function Server() {
  const { client, who } = useEngine();
  const info = useQuery({
    queryKey: ['info'],
    queryFn: ({ signal }) => client.info({ signal }),
  });
  return (
    <Page title="Server">
      <Panel title="Health">
        <Readiness />
      </Panel>
      <Panel title="Versions">
        <Loaded query={info} height={48}>
          {(versions) => (
            <Facts
              facts={{
                Server: versions.version,
                'Database schema': versions.storage_schema_version,
                'Capsule schema': versions.contract_schema_version,
                Cell: versions.cell,
                Environment: versions.env_label ?? undefined,
              }}
            />
          )}
        </Loaded>
      </Panel>
      <Panel title="Your key">
        <Facts
          facts={{ 'Signed in as': whoName(who), Capabilities: who.capabilities.join(', ') }}
        />
      </Panel>
      <Panel title="Interfaces">
        <ul>
          <li>
            <a href={`${ENGINE_URL}/swagger-ui`}>API explorer</a>, to read about and try the
            operations
          </li>
          <li>
            <a href={`${ENGINE_URL}/api-docs/openapi.json`}>OpenAPI document</a>, for generators of
            clients
          </li>
          <li>
            <code>{ENGINE_URL}/metrics</code>, for Prometheus; asks for a key
          </li>
        </ul>
      </Panel>
    </Page>
  );
}

function whoName(who: ReturnType<typeof useEngine>['who']): string {
  if (who.is_insecure) return 'anonymous: this server requires no key';
  return who.is_root ? 'root' : who.key?.name || (who.key?.id ?? '');
}

function Readiness() {
  const ready = useReady();
  if (ready.error) {
    const isAnswer = ready.error instanceof EngineError && ready.error.status > 0;
    return (
      <p>
        <Badge tone="danger">{isAnswer ? 'not ready' : 'unreachable'}</Badge>{' '}
        {messageOf(ready.error)}
      </p>
    );
  }
  return (
    <p>
      {ready.data ? <Badge tone="ok">ready</Badge> : <Badge>checking</Badge>} Ready means that the
      server owns the database and can reach it.
    </p>
  );
}
