/** Shown in place of a page that does not exist, or that the key may not open. */

import { Link } from 'wouter';
import { capabilitiesFor } from '../api/access.ts';
import { LinkButton } from '../components/button.tsx';
import { Empty } from '../components/error-box.tsx';
import { Page } from '../components/page.tsx';

export function NotFound() {
  return (
    <Page title="Page not found">
      <Empty title="No page has this address">
        <LinkButton href="/">Go to the overview</LinkButton>
      </Empty>
    </Page>
  );
}

export function NotAllowed({ path }: { readonly path: string }) {
  const capabilities = capabilitiesFor(path);
  return (
    <Page title="Access denied">
      <Empty title={`This page needs ${wordsOf(capabilities)}`}>
        <p>
          See the capabilities of your key on the page <Link href="/server">Server</Link>.
        </p>
      </Empty>
    </Page>
  );
}

function wordsOf(capabilities: readonly string[]): string {
  if (capabilities.includes('root')) return 'the root key';
  return `a key with the capability ${capabilities.join(' or ')}`;
}
