/** Webhook subscriptions, and their deliveries. */

import { useParams } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { Page, Tabs } from '../../components/page.tsx';
import { useFilters } from '../../lib/address.ts';
import { Deliveries } from './deliveries.tsx';
import { Outbox } from './outbox.tsx';
import { Subscriptions } from './subscriptions.tsx';

const TABS = [
  { href: '/webhooks', label: 'Subscriptions', Part: Subscriptions },
  { href: '/webhooks/outbox', label: 'Not delivered yet', Part: Outbox },
  { href: '/webhooks/deliveries', label: 'Deliveries', Part: Deliveries },
] as const;

export default function Webhooks() {
  const { allowed } = useEngine();
  const { tab } = useParams();
  const [{ subscription }] = useFilters();
  // The outbox and all deliveries span tenants, so only the root key may see them.
  const tabs = TABS.filter(
    ({ Part }) =>
      allowed.administer || Part === Subscriptions || (Part === Deliveries && subscription),
  );
  const { href, Part } = tabs.find((one) => one.href === `/webhooks/${tab}`) ?? TABS[0];
  return (
    <Page title="Webhooks" about="Signed requests about completed and failed instances.">
      <Tabs label="Webhooks" tabs={tabs} current={href} />
      <Part />
    </Page>
  );
}
