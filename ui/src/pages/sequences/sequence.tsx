/** The page of a sequence. */

import { Page } from '../../components/page.tsx';

export default function Sequence() {
  return <Page title="Sequence">{null}</Page>;
}
