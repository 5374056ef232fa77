/** The page of server. */

import { Page } from '../../components/page.tsx';

export default function Server() {
  return <Page title="Server">{null}</Page>;
}
