/** The page of sequences. */

import { Page } from '../../components/page.tsx';

export default function Sequences() {
  return <Page title="Sequences">{null}</Page>;
}
