/** The page of instance. */

import { Page } from '../../components/page.tsx';

export default function Instance() {
  return <Page title="Instance">{null}</Page>;
}
