/** The page of a new sequence. */

import { Page } from '../../components/page.tsx';

export default function NewSequence() {
  return <Page title="NewSequence">{null}</Page>;
}
