/** Rate limits of steps, and limits of the tenant. */

import { useQuery } from '@tanstack/react-query';
import {
  type Client,
  EngineError,
  type PutTenantLimits,
  type RateLimit,
  type TenantLimits,
} from 'durable-workflow-engine-client';
import { Gauge } from 'lucide-react';
import { useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { ConfirmButton, DialogButton } from '../../components/act.tsx';
import { Badge } from '../../components/badge.tsx';
import { ButtonRow } from '../../components/button.tsx';
import { messageOf } from '../../components/error-box.tsx';
import { FieldRow, FilterField, NumberField, TextField, wrongOf } from '../../components/field.tsx';
import { FormDialog, useForm } from '../../components/form.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Facts, Page, Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { useFilters } from '../../lib/address.ts';
import { countOf, formatCount, wordsOf } from '../../lib/format.ts';
import { type NumberLimits, numberOf } from '../../lib/numbers.ts';
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
  const [{ key = '' }, , at] = useFilters();
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
        {...at('key')}
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
  const list = useList('rateLimits.list', [{}], { isByOffset: true });
  return (
    <ListPanel
      title="Rate limits of steps"
      label="Rate limits"
      list={list}
      columns={COLUMNS}
      idOf={({ key }) => key}
      mayChange={allowed.operate}
      create={{ label: 'New limit', first: 'Create a limit', form: <RateLimitForm /> }}
      rowActions={(limit) => (
        <>
          <DialogButton label="Change">
            <RateLimitForm limit={limit} />
          </DialogButton>
          <ConfirmButton
            label="Remove"
            title={`Remove the limit of ${limit.key}?`}
            action="Remove limit"
            act={() => client.rateLimits.delete(limit.key)}
            done={() => `The limit of ${limit.key} was removed.`}
          >
            <p>
              The limit is {formatCount(limit.max_count)} in{' '}
              {countOf(limit.window_seconds, 'second')}. Then the best other pattern applies; steps
              that none matches start at once, however many there are.
            </p>
          </ConfirmButton>
        </>
      )}
      empty={{
        title: 'No rate limits',
        icon: Gauge,
        about: (
          <>
            Steps with a <code>rate_limit_key</code> share the limit of that key. Without a limit
            they start at once. A key with <code>*</code> limits every key that matches.
          </>
        ),
      }}
    />
  );
}

const rateDraftOf = ({
  max_count,
  window_seconds,
}: Pick<RateLimit, 'max_count' | 'window_seconds'>) => ({
  max_count: String(max_count),
  window_seconds: String(window_seconds),
});

function RateLimitForm(props: { limit?: RateLimit }) {
  const { limit } = props;
  const { client } = useEngine();
  const [key, setKey] = useState(limit?.key ?? '');
  const form = useForm(
    rateDraftOf(limit ?? { max_count: 100, window_seconds: 60 }),
    ({ max_count, window_seconds }, since) =>
      client.rateLimits.put(key, {
        max_count: numberOf('Maximum starts', max_count, FROM_1),
        window_seconds: numberOf('Window in seconds', window_seconds, FROM_1),
        ...since,
      }),
    {
      done: () => `The limit of ${key} was saved.`,
      guard: { thing: limit, read: () => limitOf(client, key), draftOf: rateDraftOf },
    },
  );
  const { at, error } = form;
  return (
    <FormDialog
      form={form}
      title={limit ? `Limit of ${limit.key}` : 'New rate limit'}
      label="Save limit"
    >
      {!limit && (
        <TextField
          label="Key"
          required
          value={key}
          onChange={setKey}
          hint="The rate_limit_key of the steps; * stands for any text: every matching key has this limit"
          wrong={wrongOf(error, 'key')}
        />
      )}
      <NumberField label="Maximum starts" limits={FROM_1} required {...at('max_count')} />
      <NumberField label="Window in seconds" limits={FROM_1} required {...at('window_seconds')} />
    </FormDialog>
  );
}

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
  const limits = useRead('tenantLimits.get', [tenant]);
  return (
    <Panel
      title={`Resource limits of ${tenant}`}
      actions={
        <ButtonRow>
          <ConfirmButton
            label="Reset to defaults"
            title={`Reset the limits of ${tenant} to the defaults?`}
            action="Reset to defaults"
            act={() => client.tenantLimits.delete(tenant)}
            done={() => `${tenant} now has the default limits.`}
          >
            <p>The values set here are deleted.</p>
          </ConfirmButton>
          <DialogButton label="Change">
            {limits.data && <TenantLimitsForm limits={limits.data} />}
          </DialogButton>
        </ButtonRow>
      }
    >
      <Loaded query={limits} height={120}>
        {(set) => (
          <Facts
            facts={Object.fromEntries(
              TENANT_LIMITS.map((name) => [
                wordsOf(name),
                set[name] === null ? 'default' : formatCount(set[name]),
              ]),
            )}
          />
        )}
      </Loaded>
    </Panel>
  );
}

/** As text for the fields. */
const textsOf = (limits: TenantLimits) =>
  Object.fromEntries(TENANT_LIMITS.map((name) => [name, limits[name]?.toString() ?? '']));

function TenantLimitsForm(props: { limits: TenantLimits }) {
  const { limits } = props;
  const { client, tenant = '' } = useEngine();
  const form = useForm(
    textsOf(limits),
    (texts, since) => {
      const set = Object.entries(texts).map(([name, text]) => [
        name,
        text.trim() === '' ? null : numberOf(wordsOf(name), text, FROM_0),
      ]);
      return client.tenantLimits.put(tenant, { ...Object.fromEntries(set), ...since });
    },
    {
      done: () => `The limits of ${tenant} were saved.`,
      guard: { thing: limits, read: () => client.tenantLimits.get(tenant), draftOf: textsOf },
    },
  );
  return (
    <FormDialog form={form} title={`Limits of ${tenant}`} label="Save limits">
      <p className="dim">Leave a field empty to use the default.</p>
      <div className={styles.fields}>
        {TENANT_LIMITS.map((name) => (
          <NumberField key={name} label={wordsOf(name)} limits={FROM_0} {...form.at(name)} />
        ))}
      </div>
    </FormDialog>
  );
}
