/** Who is told of ended instances, and whether the telling worked. */

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
  // What is on its way, and what became of all of it, is the root key's to see: it is of all tenants.
  const tabs = TABS.filter(
    ({ Part }) =>
      allowed.administer || Part === Subscriptions || (Part === Deliveries && subscription),
  );
  const { href, Part } = tabs.find((one) => one.href === `/webhooks/${tab}`) ?? TABS[0];
  return (
    <Page title="Webhooks" about="Signed requests that tell of completed and failed instances.">
      <Tabs label="Webhooks" tabs={tabs} current={href} />
      <Part />
    </Page>
  );
}
