# Reads a JUnit file of ctest: prints each test that was skipped, and why.
#
# A reason is what follows "skipped:" in the test's output, or GoogleTest's line after ": Skipped".

function plain(text) {
  gsub(/&lt;/, "<", text)
  gsub(/&gt;/, ">", text)
  gsub(/&quot;/, "\"", text)
  gsub(/&apos;/, "'", text)
  gsub(/&amp;/, "\\&", text)
  return text
}

/<testcase / {
  skipped = /status="notrun"/
  match($0, /name="[^"]*"/)
  name = plain(substr($0, RSTART + 6, RLENGTH - 7))
  reason = ""
  next_is_reason = 0
  next
}

skipped && next_is_reason && reason == "" { reason = $0 }
skipped { next_is_reason = /: Skipped$/ }
skipped && reason == "" && match($0, /(skipped|SKIPPED): */) {
  reason = substr($0, RSTART + RLENGTH)
}

skipped && /<\/testcase>/ {
  printf "  %s: %s\n", name, reason == "" ? "it gives no reason" : plain(reason)
  count++
}

END { exit count ? 0 : 1 }
