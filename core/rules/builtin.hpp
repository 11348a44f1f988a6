// The built-in rules by name. What is known of each of them is in src/maxcosine/rules/builtin.py.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "alma.hpp"
#include "band.hpp"
#include "cmcp.hpp"
#include "mcp.hpp"
#include "naromma.hpp"
#include "norma.hpp"
#include "passive_aggressive.hpp"
#include "perceptron.hpp"
#include "romma.hpp"

namespace maxcosine {

inline constexpr std::array<std::pair<std::string_view, StepFunction>, 14> BUILTIN_RULES{{
    {"aggressive_romma", call_rule<AggressiveRomma>},
    {"alma", call_rule<Alma>},
    {"cmcp", call_rule<Cmcp>},
    {"damped_mcp", call_rule<DampedMcp>},
    {"mcp", call_rule<Mcp>},
    {"mcp_exact", call_rule<McpExact>},
    {"naromma", call_rule<Naromma>},
    {"norma", call_rule<Norma>},
    {"pa", call_rule<Pa>},
    {"pa1", call_rule<Pa1>},
    {"pa2", call_rule<Pa2>},
    {"perceptron", call_rule<Perceptron>},
    {"romma", call_rule<Romma>},
    {"soft_mcp", call_rule<SoftMcp>},
}};

}  // namespace maxcosine
