/** API keys of the tenant, and secrets of its steps. */

import { useEngine } from '../../api/engine.tsx';
import { Page, useTabs } from '../../components/page.tsx';
import { ApiKeys } from './api-keys.tsx';
import { Credentials } from './credentials.tsx';

const TABS = [
  ['', 'API keys', ApiKeys],
  ['secrets', 'Secrets of steps', Credentials],
] as const;

export default function Keys() {
  const { allowed } = useEngine();
  // Only the root key manages API keys.
  const seen = TABS.filter(([, , part]) => allowed.administer || part === Credentials);
  const [tabs, Part] = useTabs('Keys and secrets', '/keys', seen);
  return (
    <Page title="Keys and secrets">
      {tabs}
      <Part />
    </Page>
  );
}
