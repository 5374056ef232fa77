/** Shown for addresses without a page. */

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
