/** Triggers, and the events that steps wait for. */

import { Page, useTabs } from '../../components/page.tsx';
import { Events } from './events.tsx';
import { TriggerList } from './trigger-list.tsx';

const TABS = [
  ['', 'Triggers', TriggerList],
  ['events', 'Events', Events],
] as const;

export default function Triggers() {
  const [tabs, Part] = useTabs('Triggers and events', '/triggers', TABS);
  return (
    <Page title="Triggers and events">
      {tabs}
      <Part />
    </Page>
  );
}
