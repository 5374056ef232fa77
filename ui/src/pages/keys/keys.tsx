/** Who may use the engine, and the secrets of its steps. */

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
  // Keys are the root key's alone; others see the secrets only.
  const tabs = allowed.administer ? [KEYS, SECRETS] : [SECRETS];
  const current = tab === 'secrets' || !allowed.administer ? SECRETS : KEYS;
  return (
    <Page title="Keys and secrets">
      <Tabs label="Keys and secrets" tabs={tabs} current={current.href} />
      {current === KEYS ? <ApiKeys /> : <Credentials />}
    </Page>
  );
}
