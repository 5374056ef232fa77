/** The webhook subscriptions of the tenant. */

import type {
  SubscriptionCreated,
  WebhookEventType,
  WebhookSubscription,
} from 'durable-workflow-engine-client';
import { Webhook } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { ConfirmButton, DialogButton } from '../../components/act.tsx';
import { Badge } from '../../components/badge.tsx';
import { ButtonRow } from '../../components/button.tsx';
import { Choices, TextField } from '../../components/field.tsx';
import { FormDialog, type FormState, useForm } from '../../components/form.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { SecretOnce } from '../../components/secret-once.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';

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
  {
    name: 'Sent',
    cell: ({ id }) => (
      <Link href={hrefOf('/webhooks/deliveries', { subscription: id })}>Deliveries</Link>
    ),
  },
];

export function Subscriptions() {
  const { client, allowed } = useEngine();
  const list = useList('webhooks.subscriptions', [{}], { isByOffset: true });
  return (
    <ListPanel
      title="Subscriptions"
      label="Webhook subscriptions"
      list={list}
      columns={COLUMNS}
      idOf={({ id }) => id}
      mayChange={allowed.operate}
      create={{
        label: 'New subscription',
        first: 'Create a subscription',
        form: <NewSubscription />,
      }}
      rowActions={(subscription) => (
        <>
          <DialogButton label="Change">
            <ChangedSubscription subscription={subscription} />
          </DialogButton>
          <ConfirmButton
            label="Delete"
            title="Delete this subscription?"
            action="Delete subscription"
            act={() => client.webhooks.unsubscribe(subscription.id)}
            done={() => `${subscription.url} receives no more webhooks.`}
          >
            <p>
              {subscription.url} receives no more webhooks. Those not delivered yet are discarded.
            </p>
          </ConfirmButton>
        </>
      )}
      empty={{
        title: 'No subscriptions yet',
        icon: Webhook,
        about: 'A subscription sends a signed request to a URL whenever an instance ends.',
      }}
    />
  );
}

function NewSubscription() {
  const { client } = useEngine();
  const [made, setMade] = useState<SubscriptionCreated>();
  const form = useForm(
    { url: '', events: EVENTS, secret: '' },
    ({ url, events }) => client.webhooks.subscribe({ url, events }),
    { onDone: setMade },
  );
  if (made) {
    return (
      <SecretOnce
        title="Subscription created"
        about="Its webhooks are signed with this secret."
        secret={made.secret}
      />
    );
  }
  return (
    <FormDialog form={form} title="New subscription" label="Subscribe">
      <Fields at={form.at} />
    </FormDialog>
  );
}

const draftOf = ({ url, events }: WebhookSubscription) => ({ url, events, secret: '' });

function ChangedSubscription(props: { subscription: WebhookSubscription }) {
  const { subscription } = props;
  const { client } = useEngine();
  const form = useForm(
    draftOf(subscription),
    ({ secret, ...told }, since) =>
      client.webhooks.update(subscription.id, { ...told, ...(secret && { secret }), ...since }),
    {
      done: ({ url }) => `The subscription of ${url} was changed.`,
      guard: {
        thing: subscription,
        read: () => client.webhooks.subscription(subscription.id),
        draftOf,
        viewOf: ({ url, events }) => ({ url, events }),
      },
    },
  );
  return (
    <FormDialog form={form} title="Change the subscription" label="Save">
      <Fields at={form.at} />
      <TextField
        label="New secret"
        type="password"
        autoComplete="off"
        hint="Used from the next attempt on. Leave empty to keep the current secret."
        {...form.at('secret')}
      />
    </FormDialog>
  );
}

function Fields({ at }: Pick<FormState<ReturnType<typeof draftOf>>, 'at'>) {
  return (
    <>
      <TextField label="URL" type="url" required {...at('url')} />
      <Choices
        legend="Events"
        options={EVENTS.map((value) => ({ value, label: value }))}
        {...at('events')}
      />
    </>
  );
}
