/** The page of keys. */

import { Page } from '../../components/page.tsx';

export default function Keys() {
  return <Page title="Keys">{null}</Page>;
}
