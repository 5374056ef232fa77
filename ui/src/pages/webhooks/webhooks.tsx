/** Webhook subscriptions, and their deliveries. */

import { useEngine } from '../../api/engine.tsx';
import { Page, useTabs } from '../../components/page.tsx';
import { useFilters } from '../../lib/address.ts';
import { Deliveries } from './deliveries.tsx';
import { Outbox } from './outbox.tsx';
import { Subscriptions } from './subscriptions.tsx';

const TABS = [
  ['', 'Subscriptions', Subscriptions],
  ['outbox', 'Not delivered yet', Outbox],
  ['deliveries', 'Deliveries', Deliveries],
] as const;

export default function Webhooks() {
  const { allowed } = useEngine();
  const [{ subscription }] = useFilters();
  // The outbox and all deliveries span tenants, so only the root key may see them.
  const seen = TABS.filter(
    ([, , part]) =>
      allowed.administer || part === Subscriptions || (part === Deliveries && subscription),
  );
  const [tabs, Part] = useTabs('Webhooks', '/webhooks', seen);
  return (
    <Page title="Webhooks" about="Signed requests about completed and failed instances.">
      {tabs}
      <Part />
    </Page>
  );
}
