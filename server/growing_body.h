// A body that takes memory as bytes arrive, and not as they are announced.
#pragma once

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional.hpp>
#include <cstdint>
#include <limits>
#include <string>

#include "server/net.h"

namespace spel::server {

/// Beast's Body. Beast's own string_body reserves the announced length: a client that announces
/// much and sends nothing would hold as much memory as one that sends it.
struct GrowingBody {
  struct value_type {
    std::string text;
    std::size_t announced = std::numeric_limits<std::size_t>::max();

    /// The memory `more` bytes more would take.
    [[nodiscard]] std::size_t bytes_with(std::size_t more) const {
      const std::size_t size = text.size() + more;
      return size <= text.capacity() ? text.capacity()
                                     : std::max(size, std::min(2 * text.capacity(), announced));
    }
  };

  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(boost::beast::http::header<isRequest, Fields>& /*header*/, value_type& body)
        : body_(body) {}

    void init(const boost::optional<std::uint64_t>& length, IoError& error) {
      error = {};
      if (length) {
        body_.announced = static_cast<std::size_t>(*length);
      }
    }

    template <class Buffers>
    std::size_t put(const Buffers& buffers, IoError& error) {
      error = {};
      const std::size_t more = net::buffer_size(buffers);
      body_.text.reserve(body_.bytes_with(more));
      for (auto at = net::buffer_sequence_begin(buffers); at != net::buffer_sequence_end(buffers);
           ++at) {
        const net::const_buffer buffer = *at;
        body_.text.append(static_cast<const char*>(buffer.data()), buffer.size());
      }
      return more;
    }

    void finish(IoError& error) { error = {}; }

   private:
    value_type& body_;
  };
};

}  // namespace spel::server
