/** The page of failures. */

import { Page } from '../../components/page.tsx';

export default function Failures() {
  return <Page title="Failures">{null}</Page>;
}
