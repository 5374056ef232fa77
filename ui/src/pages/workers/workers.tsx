/** Queues, workers, worker endpoints and tasks. */

import { useParams } from 'wouter';
import { Page, Tabs } from '../../components/page.tsx';
import { Endpoints } from './endpoints.tsx';
import { Queues } from './queues-tab.tsx';
import { Tasks } from './tasks.tsx';
import { WorkerList } from './worker-list.tsx';

const TABS = [
  { href: '/workers', label: 'Queues', Part: Queues },
  { href: '/workers/list', label: 'Workers', Part: WorkerList },
  { href: '/workers/endpoints', label: 'Endpoints', Part: Endpoints },
  { href: '/workers/tasks', label: 'Tasks', Part: Tasks },
] as const;

export default function Workers() {
  const { tab } = useParams();
  const { href, Part } = TABS.find((one) => one.href === `/workers/${tab}`) ?? TABS[0];
  return (
    <Page
      title="Workers and queues"
      about="Steps that run on workers: waiting tasks, and the workers that claim them."
    >
      <Tabs label="Workers and queues" tabs={TABS} current={href} />
      <Part />
    </Page>
  );
}
