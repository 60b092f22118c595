#include "engine/schedule/recent_rounds.h"

namespace spel::engine {

void RecentRounds::add_round(std::size_t proposed, std::size_t accepted) {
  rounds_[next_round_] = {proposed, accepted};
  next_round_ = (next_round_ + 1) % kWindow;
}

void RecentRounds::add_step(std::size_t emitted, double seconds) {
  steps_[next_step_] = {emitted, seconds};
  next_step_ = (next_step_ + 1) % kWindow;
}

double RecentRounds::acceptance() const {
  std::size_t proposed = 0;
  std::size_t accepted = 0;
  for (const Round& round : rounds_) {
    proposed += round.proposed;
    accepted += round.accepted;
  }
  return proposed == 0 ? 0.0 : static_cast<double>(accepted) / static_cast<double>(proposed);
}

double RecentRounds::tokens_per_second() const {
  std::size_t emitted = 0;
  double seconds = 0.0;
  for (const Step& step : steps_) {
    emitted += step.emitted;
    seconds += step.seconds;
  }
  return seconds <= 0.0 ? 0.0 : static_cast<double>(emitted) / seconds;
}

}  // namespace spel::engine
