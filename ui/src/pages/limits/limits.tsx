/** The page of limits. */

import { Page } from '../../components/page.tsx';

export default function Limits() {
  return <Page title="Limits">{null}</Page>;
}
