/** Who is told of ended instances, and whether the telling worked. */

import { useParams } from 'wouter';
import { Page, Tabs } from '../../components/page.tsx';
import { Deliveries } from './deliveries.tsx';
import { Outbox } from './outbox.tsx';
import { Subscriptions } from './subscriptions.tsx';

const TABS = [
  { href: '/webhooks', label: 'Subscriptions', Part: Subscriptions },
  { href: '/webhooks/outbox', label: 'Not delivered yet', Part: Outbox },
  { href: '/webhooks/deliveries', label: 'Deliveries', Part: Deliveries },
] as const;

export default function Webhooks() {
  const { tab } = useParams();
  const { href, Part } = TABS.find((one) => one.href === `/webhooks/${tab}`) ?? TABS[0];
  return (
    <Page title="Webhooks" about="Signed requests that tell of completed and failed instances.">
      <Tabs label="Webhooks" tabs={TABS} current={href} />
      <Part />
    </Page>
  );
}
