/** Rate limits of steps, and limits of the tenant. */

import { useQuery } from '@tanstack/react-query';
import {
  type Client,
  EngineError,
  type PutTenantLimits,
  type RateLimit,
  type TenantLimits,
} from 'durable-workflow-engine-client';
import { Gauge, Plus } from 'lucide-react';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { useAction } from '../../components/action.ts';
import { Badge } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { ConfirmDialog, Dialog, DialogActions } from '../../components/dialog.tsx';
import { Empty, ErrorBox, messageOf } from '../../components/error-box.tsx';
import {
  FieldRow,
  FilterField,
  Form,
  NumberField,
  TextField,
  wrongOf,
} from '../../components/field.tsx';
import { Conflict, useGuard } from '../../components/guard.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Facts, Page, Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { useFilters } from '../../lib/address.ts';
import { countOf, formatCount, wordsOf } from '../../lib/format.ts';
import { type NumberLimits, numberOf } from '../../lib/numbers.ts';
import { pageByOffset } from '../../lib/offset.ts';
import styles from './limits.module.css';

const FROM_0: NumberLimits = { isInteger: true, min: 0 };
const FROM_1: NumberLimits = { isInteger: true, min: 1 };

export default function Limits() {
  const { allowed } = useEngine();
  return (
    <Page title="Limits">
      <LimitOfKey />
      <RateLimits />
      {allowed.administer && <LimitsOfTenant />}
    </Page>
  );
}

/** The limit that applies to a key: its own, or that of a pattern. */
function LimitOfKey() {
  const { client } = useEngine();
  const [{ key = '' }, change] = useFilters();
  const limit = useQuery({
    queryKey: ['rateLimits.get', key],
    queryFn: ({ signal }) =>
      client.rateLimits.get(key, { signal }).catch((error: unknown) => {
        if (error instanceof EngineError && error.status === 404) return null;
        throw error;
      }),
    enabled: key.trim() !== '',
  });
  return (
    <FieldRow>
      <FilterField
        label="Limit of a key"
        placeholder="bank:c-17"
        value={key}
        onChange={(text) => change({ key: text })}
        hint={
          limit.data === undefined ? (
            'Its own, or that of a pattern'
          ) : (
            <Applied limit={limit.data} />
          )
        }
        wrong={limit.error === null ? undefined : messageOf(limit.error)}
      />
    </FieldRow>
  );
}

function Applied({ limit }: { readonly limit: RateLimit | null }) {
  if (limit === null) return 'No limit applies: its steps start at once';
  const { max_count, window_seconds, pattern } = limit;
  return (
    <>
      {formatCount(max_count)} in {countOf(window_seconds, 'second')}
      {pattern !== undefined && (
        <>
          , by the pattern <code>{pattern}</code>
        </>
      )}
    </>
  );
}

const COLUMNS: readonly Column<RateLimit>[] = [
  {
    name: 'Key',
    cell: ({ key }) => (
      <>
        <code>{key}</code> {key.includes('*') && <Badge>pattern</Badge>}
      </>
    ),
  },
  { name: 'Limit', isNumber: true, cell: ({ max_count }) => formatCount(max_count) },
  {
    name: 'Window (seconds)',
    isNumber: true,
    cell: ({ window_seconds }) => formatCount(window_seconds),
  },
  { name: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} /> },
];

function RateLimits() {
  const { client, allowed } = useEngine();
  const [edited, setEdited] = useState<RateLimit | 'new'>();
  const [removed, setRemoved] = useState<RateLimit>();
  const list = useList<RateLimit>(['rateLimits.list'], (page, options) =>
    pageByOffset(page, (asked) => client.rateLimits.list(asked, options)),
  );
  const remove = useAction((key: string) => client.rateLimits.delete(key), {
    done: (_, key) => `The limit of ${key} was removed.`,
    onDone: () => setRemoved(undefined),
  });
  const actions: Column<RateLimit> = {
    name: 'Action',
    cell: (limit) => (
      <ButtonRow>
        <Button onClick={() => setEdited(limit)}>Change</Button>
        <Button onClick={() => setRemoved(limit)}>Remove</Button>
      </ButtonRow>
    ),
  };
  return (
    <Panel
      title="Rate limits of steps"
      isFlush
      actions={
        allowed.operate && (
          <Button icon={Plus} onClick={() => setEdited('new')}>
            New limit
          </Button>
        )
      }
    >
      <ListTable
        list={list}
        label="Rate limits"
        columns={allowed.operate ? [...COLUMNS, actions] : COLUMNS}
        idOf={({ key }) => key}
        empty={
          <Empty title="No rate limits" icon={Gauge}>
            <p>
              Steps with a <code>rate_limit_key</code> share the limit of that key. Without a limit
              they start at once. A key with <code>*</code> limits every key that matches.
            </p>
            {allowed.operate && <Button onClick={() => setEdited('new')}>Create a limit</Button>}
          </Empty>
        }
      />
      {edited && (
        <RateLimitForm
          limit={edited === 'new' ? undefined : edited}
          onClose={() => setEdited(undefined)}
        />
      )}
      {removed && (
        <ConfirmDialog
          title={`Remove the limit of ${removed.key}?`}
          action="Remove limit"
          kind="danger"
          isBusy={remove.isBusy}
          error={remove.error}
          onConfirm={() => remove.run(removed.key)}
          onClose={() => {
            remove.reset();
            setRemoved(undefined);
          }}
        >
          <p>
            The limit is {formatCount(removed.max_count)} in{' '}
            {countOf(removed.window_seconds, 'second')}. Then the best other pattern applies; steps
            that none matches start at once, however many there are.
          </p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

function RateLimitForm(props: { limit: RateLimit | undefined; onClose: () => void }) {
  const { limit, onClose } = props;
  const { client } = useEngine();
  const [key, setKey] = useState(limit?.key ?? '');
  const guard = useGuard(limit, () => limitOf(client, key), viewOfRate);
  const [count, setCount] = useState(String(limit?.max_count ?? 100));
  const [seconds, setSeconds] = useState(String(limit?.window_seconds ?? 60));
  const save = useAction(
    async () =>
      guard.run(async (since) =>
        client.rateLimits.put(key, {
          max_count: numberOf('Maximum starts', count, FROM_1),
          window_seconds: numberOf('Window in seconds', seconds, FROM_1),
          ...since,
        }),
      ),
    { done: () => `The limit of ${key} was saved.`, onDone: onClose },
  );
  return (
    <Dialog title={limit ? `Limit of ${limit.key}` : 'New rate limit'} onClose={onClose}>
      <Form onSubmit={() => save.run(undefined)}>
        {!limit && (
          <TextField
            label="Key"
            required
            value={key}
            onChange={setKey}
            hint="The rate_limit_key of the steps; * stands for any text: every matching key has this limit"
            wrong={wrongOf(save.error, 'key')}
          />
        )}
        <NumberField
          label="Maximum starts"
          limits={FROM_1}
          required
          value={count}
          onChange={setCount}
          wrong={wrongOf(save.error, 'max_count')}
        />
        <NumberField
          label="Window in seconds"
          limits={FROM_1}
          required
          value={seconds}
          onChange={setSeconds}
          wrong={wrongOf(save.error, 'window_seconds')}
        />
        <Conflict
          guard={guard}
          mine={{ max_count: count, window_seconds: seconds }}
          onTake={({ max_count, window_seconds }) => {
            setCount(String(max_count));
            setSeconds(String(window_seconds));
            save.reset();
          }}
          onKeep={() => save.run(undefined)}
        />
        {save.error !== null && <ErrorBox error={save.error} />}
        <DialogActions label="Save limit" isBusy={save.isBusy} onClose={onClose} />
      </Form>
    </Dialog>
  );
}

const viewOfRate = ({ max_count, window_seconds }: RateLimit) => ({ max_count, window_seconds });

/** The limit of the key itself; undefined if only that of a pattern applies. */
async function limitOf(client: Client, key: string): Promise<RateLimit | undefined> {
  const limit = await client.rateLimits.get(key);
  return limit.pattern === undefined ? limit : undefined;
}

/** In the order of the form. */
const TENANT_LIMITS = [
  'bytes_per_second',
  'bytes_burst',
  'rows_per_second',
  'rows_burst',
  'blocks_per_second',
  'blocks_burst',
  'schedules_per_second',
  'schedules_burst',
  'schedules_max',
  'queue_depth_max',
] as const satisfies readonly (keyof PutTenantLimits)[];

function LimitsOfTenant() {
  const { client, tenant = '' } = useEngine();
  const [isEdited, setEdited] = useState(false);
  const [isReset, setReset] = useState(false);
  const limits = useRead('tenantLimits.get', [tenant]);
  const reset = useAction(() => client.tenantLimits.delete(tenant), {
    done: () => `${tenant} now has the default limits.`,
    onDone: () => setReset(false),
  });
  return (
    <Panel
      title={`Resource limits of ${tenant}`}
      actions={
        <ButtonRow>
          <Button onClick={() => setReset(true)}>Reset to defaults</Button>
          <Button onClick={() => setEdited(true)}>Change</Button>
        </ButtonRow>
      }
    >
      <Loaded query={limits} height={120}>
        {(set) => (
          <>
            <Facts
              facts={TENANT_LIMITS.map((name) => [
                wordsOf(name),
                set[name] === null ? 'default' : formatCount(set[name]),
              ])}
            />
            {isEdited && <TenantLimitsForm limits={set} onClose={() => setEdited(false)} />}
          </>
        )}
      </Loaded>
      {isReset && (
        <ConfirmDialog
          title={`Reset the limits of ${tenant} to the defaults?`}
          action="Reset to defaults"
          kind="danger"
          isBusy={reset.isBusy}
          error={reset.error}
          onConfirm={() => reset.run(undefined)}
          onClose={() => {
            reset.reset();
            setReset(false);
          }}
        >
          <p>The values set here are deleted.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

/** As text for the fields. */
const textsOf = (limits: TenantLimits): Readonly<Record<string, string>> =>
  Object.fromEntries(TENANT_LIMITS.map((name) => [name, limits[name]?.toString() ?? '']));

function TenantLimitsForm(props: { limits: TenantLimits; onClose: () => void }) {
  const { limits, onClose } = props;
  const { client, tenant = '' } = useEngine();
  const [texts, setTexts] = useState(() => textsOf(limits));
  const [opened] = useState(limits);
  const guard = useGuard(opened, () => client.tenantLimits.get(tenant), textsOf);
  const save = useAction(
    async () => {
      const set = TENANT_LIMITS.map((name) => {
        const text = texts[name]?.trim() ?? '';
        return [name, text === '' ? null : numberOf(wordsOf(name), text, FROM_0)];
      });
      return guard.run((since) =>
        client.tenantLimits.put(tenant, { ...Object.fromEntries(set), ...since }),
      );
    },
    { done: () => `The limits of ${tenant} were saved.`, onDone: onClose },
  );
  return (
    <Dialog title={`Limits of ${tenant}`} onClose={onClose}>
      <Form onSubmit={() => save.run(undefined)}>
        <p className="dim">Leave a field empty to use the default.</p>
        <div className={styles.fields}>
          {TENANT_LIMITS.map((name) => (
            <NumberField
              key={name}
              label={wordsOf(name)}
              limits={FROM_0}
              value={texts[name] ?? ''}
              onChange={(text) => setTexts({ ...texts, [name]: text })}
              wrong={wrongOf(save.error, name)}
            />
          ))}
        </div>
        <Conflict
          guard={guard}
          mine={texts}
          onTake={(present) => {
            setTexts(textsOf(present));
            save.reset();
          }}
          onKeep={() => save.run(undefined)}
        />
        {save.error !== null && <ErrorBox error={save.error} />}
        <DialogActions label="Save limits" isBusy={save.isBusy} onClose={onClose} />
      </Form>
    </Dialog>
  );
}
