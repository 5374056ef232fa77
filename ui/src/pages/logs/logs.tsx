/** What the steps of all instances of the tenant have logged, newest first. */

import type { LogLine } from 'durable-workflow-engine-client';
import { ScrollText } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { AsOf } from '../../components/as-of.tsx';
import { ButtonRow, Toggle } from '../../components/button.tsx';
import { Empty } from '../../components/error-box.tsx';
import { FieldRow, FilterField, Select } from '../../components/field.tsx';
import { useListOf } from '../../components/list.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { LineFields, LogLines, lineFilters, TAIL_MS } from '../../components/log-lines.tsx';
import { Page, Panel } from '../../components/page.tsx';
import { SequenceField } from '../../components/sequence-field.tsx';
import { useHold } from '../../components/steady.ts';
import { Pager } from '../../components/table.tsx';
import { useFilters } from '../../lib/address.ts';
import { AGES, sinceOf } from '../instances/filters.ts';

const LINES_A_PAGE = 100;

export default function Logs() {
  const { client, tenant } = useEngine();
  const [filters, change, at] = useFilters();
  const { sequence, block, since, tail } = filters;
  const isTail = tail !== 'no' && filters.cursor === undefined;
  const [isHeld, hold] = useHold();
  const asked = {
    ...lineFilters(filters),
    ...(sequence && { sequence }),
    ...(block && { block_id: block }),
  };
  const list = useListOf<LogLine>(
    ['logs.list', asked, since],
    (page, options) => {
      const from = sinceOf(since ?? '', Date.now());
      return client.logs.list({ ...asked, ...page, since: from?.toISOString() }, options);
    },
    {
      limit: LINES_A_PAGE,
      enabled: tenant !== undefined,
      refetchInterval: isTail && !isHeld && TAIL_MS,
    },
  );
  return (
    <Page title="Logs" about="Lines of workers and of the log handler, of all instances.">
      <FieldRow>
        <LineFields />
        <SequenceField isFilter {...at('sequence')} />
        <FilterField label="Block" {...at('block')} />
        <Select label="Stored" options={AGES} {...at('since')} />
      </FieldRow>
      <Panel
        title="Log, newest first"
        isFlush
        actions={
          <ButtonRow>
            <AsOf query={list.query} isPolled />
            <Toggle
              icon={ScrollText}
              isOn={isTail}
              onClick={() => change({ tail: isTail ? 'no' : undefined, cursor: undefined })}
            >
              Tail
            </Toggle>
          </ButtonRow>
        }
      >
        {tenant === undefined ? (
          <Empty title="Choose a tenant" icon={ScrollText}>
            <p>Logs are read for one tenant at a time.</p>
          </Empty>
        ) : (
          <Loaded query={list.query} height={320}>
            {({ items, nextCursor }) => (
              <>
                {items.length === 0 ? (
                  <NoLines isMore={nextCursor !== undefined} />
                ) : (
                  <div {...hold}>
                    <LogLines
                      lines={items}
                      placeOf={({ instance_id, sequence_name, block_id }) => (
                        <Link href={`/instances/${instance_id}/logs`}>
                          {sequence_name} / {block_id}
                        </Link>
                      )}
                    />
                  </div>
                )}
                <Pager cursor={list.cursor} next={nextCursor} onPage={list.onPage} />
              </>
            )}
          </Loaded>
        )}
      </Panel>
    </Page>
  );
}

function NoLines({ isMore }: { readonly isMore: boolean }) {
  return (
    <Empty
      title={isMore ? 'No matches among the newest lines' : 'No matching lines'}
      icon={ScrollText}
    >
      <p>
        {isMore
          ? 'The next page searches further back.'
          : 'Lines are listed until their instance is deleted.'}
      </p>
    </Empty>
  );
}
