/** Queues, workers, worker endpoints and tasks. */

import { Page, useTabs } from '../../components/page.tsx';
import { Endpoints } from './endpoints.tsx';
import { Queues } from './queues-tab.tsx';
import { Tasks } from './tasks.tsx';
import { WorkerList } from './worker-list.tsx';

const TABS = [
  ['', 'Queues', Queues],
  ['list', 'Workers', WorkerList],
  ['endpoints', 'Endpoints', Endpoints],
  ['tasks', 'Tasks', Tasks],
] as const;

export default function Workers() {
  const [tabs, Part] = useTabs('Workers and queues', '/workers', TABS);
  return (
    <Page
      title="Workers and queues"
      about="Steps that run on workers: waiting tasks, and the workers that claim them."
    >
      {tabs}
      <Part />
    </Page>
  );
}
