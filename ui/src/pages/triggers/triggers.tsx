/** Triggers, and the events that steps wait for. */

import { useParams } from 'wouter';
import { Page, Tabs } from '../../components/page.tsx';
import { Events } from './events.tsx';
import { TriggerList } from './trigger-list.tsx';

const TABS = [
  { href: '/triggers', label: 'Triggers', Part: TriggerList },
  { href: '/triggers/events', label: 'Events', Part: Events },
] as const;

export default function Triggers() {
  const { tab } = useParams();
  const { href, Part } = TABS.find((one) => one.href === `/triggers/${tab}`) ?? TABS[0];
  return (
    <Page title="Triggers and events">
      <Tabs label="Triggers and events" tabs={TABS} current={href} />
      <Part />
    </Page>
  );
}
