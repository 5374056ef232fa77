/** For addresses that no page has. */

import { LinkButton } from '../components/button.tsx';
import { Empty } from '../components/error-box.tsx';
import { Page } from '../components/page.tsx';

export function NotFound() {
  return (
    <Page title="Not found">
      <Empty title="There is no page at this address">
        <LinkButton href="/">To the overview</LinkButton>
      </Empty>
    </Page>
  );
}
