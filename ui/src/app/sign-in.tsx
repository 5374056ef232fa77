/**
 * Determines the caller and the tenant before anything is shown: asks for an API key if the engine requires one, and
 * for a tenant if the key does not determine it.
 */

import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { Client, EngineError, type WhoAmI } from 'durable-workflow-engine-client';
import { type ReactNode, useEffect, useMemo, useState } from 'react';
import { ENGINE_URL, EngineProvider } from '../api/engine.tsx';
import { isUnauthenticated } from '../api/engine-error.ts';
import {
  declineKey,
  type Session,
  setSession,
  signIn,
  useSession,
  wantSession,
} from '../api/session.ts';
import { Button } from '../components/button.tsx';
import { ErrorBox } from '../components/error-box.tsx';
import { Form, TextField } from '../components/field.tsx';
import { leavingFetch } from '../lib/leaving.ts';
import styles from './sign-in.module.css';
import {
  InTenant,
  leaveTenant,
  leaveThing,
  switchTenant,
  useAddressedTenant,
} from './tenant-address.tsx';

/** Few, since the user is waiting. */
const RETRIES = 1;
const TIMEOUT_MS = 30_000;

export function SignIn({ children }: { children: ReactNode }) {
  const session = useSession();
  const { apiKey } = session;
  const addressed = useAddressedTenant();
  // Where one address serves several cells, the tenant selects the cell that knows the key.
  const named = addressed ?? session.tenant ?? undefined;
  const wrongKey = refusalOf({ apiKey });
  const wrong = wrongKey ?? refusalOf({ tenant: named });
  if (wrong !== undefined) {
    return (
      <Card title="Sign in">
        <p role="alert">{wrong}</p>
        <Button onClick={wrongKey === undefined ? switchTenant : declineKey}>
          {wrongKey === undefined ? 'Choose another tenant' : 'Enter another key'}
        </Button>
      </Card>
    );
  }
  return <SignedIn {...{ session, addressed, named }}>{children}</SignedIn>;
}

/** Why the client cannot send the key or the tenant, such as characters that a header cannot have. */
function refusalOf(caller: Parameters<typeof clientOf>[0]): string | undefined {
  try {
    clientOf(caller);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function SignedIn(props: {
  readonly session: Session;
  readonly addressed: string | undefined;
  readonly named: string | undefined;
  readonly children: ReactNode;
}) {
  const { session, addressed, named, children } = props;
  const { apiKey } = session;
  const asking = useMemo(() => clientOf({ apiKey, tenant: named }), [apiKey, named]);
  const who = useQuery({
    queryKey: ['whoami', apiKey],
    queryFn: ({ signal }) => asking.whoami({ signal }),
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: ({ state }) => (state.data === undefined ? 3000 : false),
    enabled: ({ state }) => !isUnauthenticated(state.error),
  });
  // A tenant's key determines the tenant; requests name it anyway.
  const own = who.data?.tenant_id;
  const chosen = own ?? addressed ?? session.tenant;
  const isAll = chosen === null && who.data?.requires_tenant === false;
  const tenant = chosen ?? undefined;
  const client = useMemo(() => clientOf({ apiKey, tenant }), [apiKey, tenant]);
  // A valid key may have been revoked since.
  if (isUnauthenticated(who.error)) return <KeyForm session={session} addressed={addressed} />;
  if (who.data === undefined) {
    return who.error ? (
      <Card title="Durable workflow engine">
        <ErrorBox error={who.error} onRetry={() => void who.refetch()} />
      </Card>
    ) : null;
  }
  if (own != null && addressed !== undefined && own !== addressed) {
    return <OtherTenant addressed={addressed} own={own} />;
  }
  if (tenant === undefined && !isAll) {
    const { requires_tenant } = who.data;
    return <TenantForm client={asking} session={session} mayBeAll={!requires_tenant} />;
  }
  return (
    <EngineProvider
      key={`${apiKey} ${tenant}`}
      client={client}
      who={who.data satisfies WhoAmI}
      tenant={tenant}
    >
      <InTenant tenant={tenant}>{children}</InTenant>
    </EngineProvider>
  );
}

function clientOf({
  apiKey,
  tenant,
}: {
  apiKey?: string | undefined;
  tenant?: string | undefined;
}) {
  return new Client({
    ...{ url: ENGINE_URL, apiKey, tenant, retries: RETRIES, timeoutMs: TIMEOUT_MS },
    fetch: leavingFetch,
  });
}

function Card({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className={styles.place}>
      <div className={styles.card}>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  );
}

function KeyForm(props: { readonly session: Session; readonly addressed: string | undefined }) {
  const { session, addressed } = props;
  const [key, setKey] = useState('');
  const [name, setName] = useState(addressed ?? session.tenant ?? '');
  useEffect(wantSession, []);
  const queries = useQueryClient();
  const isRefused = session.apiKey !== undefined;
  const enter = (apiKey: string, tenant: string) => {
    // Ask again even for a key that was rejected before.
    queries.clear();
    if (addressed !== undefined && tenant !== addressed) leaveTenant();
    signIn({ apiKey, ...(tenant !== '' && { tenant }) });
  };
  return (
    <Card title="Sign in">
      <Form
        onSubmit={() => {
          if (key.trim() !== '') enter(key.trim(), name.trim());
        }}
      >
        <TextField
          label="API key"
          type="password"
          autoComplete="off"
          autoFocus
          required
          value={key}
          onChange={setKey}
          hint="The root key or a key of your tenant. It is kept until you close the tabs of this dashboard."
          wrong={isRefused ? 'This key is not valid: it is wrong, revoked or expired.' : undefined}
        />
        <TextField
          label="Tenant"
          autoComplete="off"
          value={name}
          onChange={setName}
          hint="Optional. Required for a tenant's key if this address serves several cells."
        />
        <Button submits kind="primary">
          Sign in
        </Button>
      </Form>
    </Card>
  );
}

/** For an address that somebody with a key of another tenant has sent. */
function OtherTenant({ addressed, own }: { readonly addressed: string; readonly own: string }) {
  return (
    <Card title="Another tenant">
      <p>
        This page belongs to the tenant <strong>{addressed}</strong>, and your key to{' '}
        <strong>{own}</strong>.
      </p>
      <Button
        kind="primary"
        onClick={() => {
          leaveThing();
          leaveTenant();
        }}
      >
        Open {own}
      </Button>
      <Button onClick={declineKey}>Sign in with another key</Button>
    </Card>
  );
}

const TENANTS_A_PAGE = 100;

function TenantForm(props: {
  readonly client: Client;
  readonly session: Session;
  /** The engine takes requests that name none. */
  readonly mayBeAll: boolean;
}) {
  const { client, session, mayBeAll } = props;
  const [name, setName] = useState('');
  const tenants = useInfiniteQuery({
    queryKey: ['tenants', session.apiKey],
    queryFn: async ({ pageParam: cursor, signal }) =>
      client.tenants.list({ limit: TENANTS_A_PAGE, cursor }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor,
  });
  const names = tenants.data?.pages.flatMap((page) => page.items.map((item) => item.tenant_id));
  const matching = names?.filter((tenant) => tenant.includes(name.trim())) ?? [];
  const choose = (tenant: string | null) => {
    const { left: _, ...rest } = session;
    if (session.left !== undefined && session.left !== tenant) leaveThing();
    setSession({ ...rest, tenant });
  };
  return (
    <Card title="Choose a tenant">
      <Form
        onSubmit={() => {
          if (name.trim() !== '') choose(name.trim());
        }}
      >
        <TextField
          label="Tenant"
          value={name}
          onChange={setName}
          autoFocus
          required
          autoComplete="off"
          hint="You can enter a tenant that is not listed."
        />
        <Button submits kind="primary">
          Open
        </Button>
      </Form>
      {mayBeAll && <Button onClick={() => choose(null)}>All tenants</Button>}
      {tenants.error && <NoTenants error={tenants.error} />}
      <ul className={styles.tenants} aria-label="Tenants">
        {matching.map((tenant) => (
          <li key={tenant}>
            <Button onClick={() => choose(tenant)}>{tenant}</Button>
          </li>
        ))}
      </ul>
      {tenants.hasNextPage && (
        <Button isBusy={tenants.isFetchingNextPage} onClick={() => void tenants.fetchNextPage()}>
          Load more tenants
        </Button>
      )}
    </Card>
  );
}

/** A proxy in front of several cells does not know which cell is meant. */
function NoTenants({ error }: { readonly error: Error }) {
  if (!(error instanceof EngineError) || error.status !== 400) return <ErrorBox error={error} />;
  return <p>This address serves several cells and cannot list their tenants. Enter the name.</p>;
}
