/** For pages that the key may not see. */

import { Link } from 'wouter';
import { capabilitiesFor } from '../api/access.ts';
import { Empty } from '../components/error-box.tsx';
import { Page } from '../components/page.tsx';

export function NotAllowed({ path }: { readonly path: string }) {
  const capabilities = capabilitiesFor(path);
  return (
    <Page title="Your key may not see this">
      <Empty title={`It takes ${wordsOf(capabilities)}`}>
        <p>
          What your key may do is on the page <Link href="/server">Server</Link>.
        </p>
      </Empty>
    </Page>
  );
}

function wordsOf(capabilities: readonly string[]): string {
  if (capabilities.includes('root')) return 'the root key';
  return `a key with the capability ${capabilities.join(' or ')}`;
}
