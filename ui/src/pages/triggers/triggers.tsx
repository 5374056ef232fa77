/** The page of triggers. */

import { Page } from '../../components/page.tsx';

export default function Triggers() {
  return <Page title="Triggers">{null}</Page>;
}
