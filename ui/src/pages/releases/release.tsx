/** The page of a release. */

import { Page } from '../../components/page.tsx';

export default function Release() {
  return <Page title="Release">{null}</Page>;
}
