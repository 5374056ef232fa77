/** The webhook subscriptions of the tenant. */

import type {
  SubscriptionCreated,
  WebhookEventType,
  WebhookSubscription,
} from 'durable-workflow-engine-client';
import { Plus, Webhook } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { type Action, useAction } from '../../components/action.ts';
import { Badge } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { ConfirmDialog, Dialog, DialogActions } from '../../components/dialog.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import { Choices, Form, TextField, wrongOf } from '../../components/field.tsx';
import { Conflict, type Guard, useGuard } from '../../components/guard.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
import { SecretOnce } from '../../components/secret-once.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';
import { pageByOffset } from '../../lib/offset.ts';

const EVENTS: readonly WebhookEventType[] = ['instance.completed', 'instance.failed'];

const COLUMNS: readonly Column<WebhookSubscription>[] = [
  { name: 'URL', cell: ({ url }) => url },
  {
    name: 'Events',
    cell: ({ events }) => (
      <ButtonRow>
        {events.map((event) => (
          <Badge key={event}>{event}</Badge>
        ))}
      </ButtonRow>
    ),
  },
  { name: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} /> },
];

export function Subscriptions() {
  const { client, allowed } = useEngine();
  const [edited, setEdited] = useState<WebhookSubscription | 'new'>();
  const [removed, setRemoved] = useState<WebhookSubscription>();
  const list = useList<WebhookSubscription>(['webhooks.subscriptions'], (page, options) =>
    pageByOffset(page, (asked) => client.webhooks.subscriptions(asked, options)),
  );
  const remove = useAction(({ id }: WebhookSubscription) => client.webhooks.unsubscribe(id), {
    done: (_, { url }) => `${url} receives no more webhooks.`,
    onDone: () => setRemoved(undefined),
  });
  const action: Column<WebhookSubscription> = {
    name: 'Action',
    cell: (subscription) => (
      <ButtonRow>
        <Link href={hrefOf('/webhooks/deliveries', { subscription: subscription.id })}>
          Deliveries
        </Link>
        {allowed.operate && (
          <>
            <Button onClick={() => setEdited(subscription)}>Change</Button>
            <Button onClick={() => setRemoved(subscription)}>Delete</Button>
          </>
        )}
      </ButtonRow>
    ),
  };
  return (
    <Panel
      title="Subscriptions"
      isFlush
      actions={
        allowed.operate && (
          <Button icon={Plus} onClick={() => setEdited('new')}>
            New subscription
          </Button>
        )
      }
    >
      <ListTable
        list={list}
        label="Webhook subscriptions"
        columns={[...COLUMNS, action]}
        idOf={({ id }) => id}
        empty={
          <Empty title="No subscriptions yet" icon={Webhook}>
            <p>A subscription sends a signed request to a URL whenever an instance ends.</p>
            {allowed.operate && (
              <Button onClick={() => setEdited('new')}>Create a subscription</Button>
            )}
          </Empty>
        }
      />
      {edited === 'new' && <NewSubscription onClose={() => setEdited(undefined)} />}
      {edited !== undefined && edited !== 'new' && (
        <ChangedSubscription subscription={edited} onClose={() => setEdited(undefined)} />
      )}
      {removed && (
        <ConfirmDialog
          title="Delete this subscription?"
          action="Delete subscription"
          kind="danger"
          isBusy={remove.isBusy}
          error={remove.error}
          onConfirm={() => remove.run(removed)}
          onClose={() => setRemoved(undefined)}
        >
          <p>{removed.url} is told nothing any more; what is not delivered yet is given up.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}

function NewSubscription({ onClose }: { onClose: () => void }) {
  const { client } = useEngine();
  const [made, setMade] = useState<SubscriptionCreated>();
  const save = useAction((told: Told) => client.webhooks.subscribe(told), { onDone: setMade });
  if (made) {
    return (
      <SecretOnce
        title="Subscription created"
        about="Its webhooks are signed with this secret."
        secret={made.secret}
        onClose={onClose}
      />
    );
  }
  return (
    <SubscriptionForm
      title="New subscription"
      label="Subscribe"
      first={{ url: '', events: EVENTS }}
      save={save}
      onClose={onClose}
    />
  );
}

function ChangedSubscription(props: { subscription: WebhookSubscription; onClose: () => void }) {
  const { subscription, onClose } = props;
  const { client } = useEngine();
  const [secret, setSecret] = useState('');
  const guard = useGuard(
    subscription,
    () => client.webhooks.subscription(subscription.id),
    ({ url, events }): Told => ({ url, events }),
  );
  const save = useAction(
    (told: Told) =>
      guard.run((since) =>
        client.webhooks.update(subscription.id, {
          ...told,
          ...(secret !== '' && { secret }),
          ...since,
        }),
      ),
    { done: ({ url }) => `The subscription of ${url} was changed.`, onDone: onClose },
  );
  return (
    <SubscriptionForm
      title="Change the subscription"
      label="Save"
      first={subscription}
      guard={guard}
      save={save}
      onClose={onClose}
    >
      <TextField
        label="New secret"
        type="password"
        autoComplete="off"
        value={secret}
        onChange={setSecret}
        hint="Used from the next attempt on. Leave empty to keep the current secret."
        wrong={wrongOf(save.error, 'secret')}
      />
    </SubscriptionForm>
  );
}

type Told = Pick<WebhookSubscription, 'url' | 'events'>;

function SubscriptionForm(props: {
  title: string;
  label: string;
  first: Told;
  save: Action<Told>;
  /** For a subscription that is being changed. */
  guard?: Guard<WebhookSubscription>;
  onClose: () => void;
  /** Further fields. */
  children?: ReactNode;
}) {
  const { title, label, first, save, guard, onClose, children } = props;
  const [url, setUrl] = useState(first.url);
  const [events, setEvents] = useState(first.events);
  return (
    <Dialog title={title} onClose={onClose}>
      <Form onSubmit={() => save.run({ url, events })}>
        <TextField
          label="URL"
          type="url"
          required
          value={url}
          onChange={setUrl}
          wrong={wrongOf(save.error, 'url')}
        />
        <Choices
          legend="Events"
          options={EVENTS.map((value) => ({ value, label: value }))}
          chosen={events}
          onChange={setEvents}
        />
        {children}
        {guard && (
          <Conflict
            guard={guard}
            mine={{ url, events }}
            onTake={(present) => {
              setUrl(present.url);
              setEvents(present.events);
              save.reset();
            }}
            onKeep={() => save.run({ url, events })}
          />
        )}
        {save.error !== null && <ErrorBox error={save.error} />}
        <DialogActions label={label} isBusy={save.isBusy} onClose={onClose} />
      </Form>
    </Dialog>
  );
}
