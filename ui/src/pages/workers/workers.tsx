/** The page of workers. */

import { Page } from '../../components/page.tsx';

export default function Workers() {
  return <Page title="Workers">{null}</Page>;
}
