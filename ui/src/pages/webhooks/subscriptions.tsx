/** The addresses that are told of the tenant's ended instances. */

import type {
  SubscriptionCreated,
  WebhookEventType,
  WebhookSubscription,
} from 'durable-workflow-engine-client';
import { Plus, Webhook } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Badge } from '../../components/badge.tsx';
import { Button, ButtonRow } from '../../components/button.tsx';
import { ConfirmDialog, Dialog, DialogActions } from '../../components/dialog.tsx';
import { Empty, ErrorBox } from '../../components/error-box.tsx';
import { Checkbox, Form, TextField, wrongOf } from '../../components/field.tsx';
import { ListTable, useList } from '../../components/list.tsx';
import { Panel } from '../../components/page.tsx';
import { SecretOnce } from '../../components/secret-once.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { hrefOf } from '../../lib/address.ts';

const EVENTS: readonly WebhookEventType[] = ['instance.completed', 'instance.failed'];

const COLUMNS: readonly Column<WebhookSubscription>[] = [
  { name: 'Address', cell: ({ url }) => url },
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
  const [isMaking, setMaking] = useState(false);
  const [removed, setRemoved] = useState<WebhookSubscription>();
  const list = useList<WebhookSubscription>(['webhooks.subscriptions'], (page, options) =>
    client.webhooks.subscriptions(page, options),
  );
  const remove = useAction(({ id }: WebhookSubscription) => client.webhooks.unsubscribe(id), {
    done: (_, { url }) => `${url} is told nothing any more.`,
    onDone: () => setRemoved(undefined),
  });
  const action: Column<WebhookSubscription> = {
    name: 'Action',
    cell: (subscription) => (
      <ButtonRow>
        <Link href={hrefOf('/webhooks/deliveries', { subscription: subscription.id })}>
          Deliveries
        </Link>
        {allowed.operate && <Button onClick={() => setRemoved(subscription)}>Delete</Button>}
      </ButtonRow>
    ),
  };
  return (
    <Panel
      title="Subscriptions"
      isFlush
      actions={
        allowed.operate && (
          <Button icon={<Plus size={15} aria-hidden />} onClick={() => setMaking(true)}>
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
          <Empty title="No subscriptions yet" icon={<Webhook size={26} aria-hidden />}>
            <p>A subscription has an address told, signed, whenever an instance ends.</p>
          </Empty>
        }
      />
      {isMaking && <SubscriptionForm onClose={() => setMaking(false)} />}
      {removed && (
        <ConfirmDialog
          title="Delete this subscription?"
          action="Delete the subscription"
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

function SubscriptionForm({ onClose }: { onClose: () => void }) {
  const { client } = useEngine();
  const [url, setUrl] = useState('');
  const [events, setEvents] = useState(EVENTS);
  const [made, setMade] = useState<SubscriptionCreated>();
  const save = useAction(() => client.webhooks.subscribe({ url, events }), { onDone: setMade });
  if (made) {
    return (
      <SecretOnce
        title="The subscription is made"
        about="Its webhooks are signed with this secret."
        secret={made.secret}
        onClose={onClose}
      />
    );
  }
  return (
    <Dialog title="New subscription" onClose={onClose}>
      <Form onSubmit={() => save.run(undefined)}>
        <TextField
          label="Address"
          type="url"
          required
          value={url}
          onChange={setUrl}
          wrong={wrongOf(save.error, 'url')}
        />
        {EVENTS.map((event) => (
          <Checkbox
            key={event}
            label={event}
            isChecked={events.includes(event)}
            onChange={(isChosen) =>
              setEvents(isChosen ? [...events, event] : events.filter((other) => other !== event))
            }
          />
        ))}
        {save.error !== null && <ErrorBox error={save.error} />}
        <DialogActions
          label="Subscribe"
          isBusy={save.isBusy}
          isDisabled={events.length === 0}
          onClose={onClose}
        />
      </Form>
    </Dialog>
  );
}
