/** API keys of the tenant, and secrets of its steps. */

import { useParams } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { Page, Tabs } from '../../components/page.tsx';
import { ApiKeys } from './api-keys.tsx';
import { Credentials } from './credentials.tsx';

const KEYS = { href: '/keys', label: 'API keys' };
const SECRETS = { href: '/keys/secrets', label: 'Secrets of steps' };

export default function Keys() {
  const { allowed } = useEngine();
  const { tab } = useParams();
  // Only the root key manages API keys.
  const tabs = allowed.administer ? [KEYS, SECRETS] : [SECRETS];
  const current = tab === 'secrets' || !allowed.administer ? SECRETS : KEYS;
  return (
    <Page title="Keys and secrets">
      <Tabs label="Keys and secrets" tabs={tabs} current={current.href} />
      {current === KEYS ? <ApiKeys /> : <Credentials />}
    </Page>
  );
}
