package dev.fieldmesh.app.screen

import android.content.Context
import android.view.View
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.experiment.ControllerLink
import dev.fieldmesh.core.experiment.ExperimentState
import dev.fieldmesh.core.experiment.Steer
import dev.fieldmesh.core.wire.Campaign
import dev.fieldmesh.core.wire.Run

/** What an experimenter asks of the controller, and what has come of it; the activity stands behind it. */
interface ExperimentActions {
    val experiment: ExperimentState
    val unit: SpeedUnit

    /** Looks at a campaign, or at none; one that [begins] is checked, and started if nothing is in the way. */
    fun choose(campaign: String?, begins: Boolean = false)

    fun scale(name: String?)

    fun speed(mps: Double, on: Boolean)

    fun repetitions(n: Int)

    fun check()

    fun start()

    fun takeBack(run: String)

    /** Looks at a run, or at none. */
    fun open(run: String?)

    /** Pauses, resumes or ends a run; for the last, [button] asks again first. */
    fun steer(run: String, how: Steer, button: TextView)

    /** Fetches a file of the run that is looked at, to show it or to hand it on. */
    fun fetch(file: String, toOpen: Boolean)
}

/** The campaigns that the controller has, one of them as a person wants it, or a run. */
class ExperimentScreen(override val view: View, private val actions: ExperimentActions) : Screen {
    private val context = view.context
    private val choice = ChoiceCard(view, actions)
    private val run = RunCard(view, actions)
    private val present = Cards<Run>(view.findViewById(R.id.present), R.layout.experiment_card)
    private val ranges = Cards<Pair<Campaign, Boolean>>(view.findViewById(R.id.ranges), R.layout.experiment_range)
    private val campaigns = Cards<Campaign>(view.findViewById(R.id.campaigns), R.layout.experiment_card)
    private val runs = Cards<Run>(view.findViewById(R.id.runs), R.layout.experiment_card)
    private var shown: Any? = null
    private var place: Any? = null

    override fun show(state: AppState) {
        val now = actions.experiment
        val newest = now to actions.unit
        if (shown == newest) return // leaves a screen reader where it is
        shown = newest
        val isRun = now.opened != null
        val isChoice = !isRun && now.choice != null
        view.tell(R.id.link_text, context.linkText(now))
        val isBroken = now.isExperimenter && now.link != ControllerLink.CONNECTING
        view.findViewById<TextView>(R.id.link_text)
            .setTextColor(context.getColor(if (isBroken) R.color.bad else R.color.text))
        val refused = now.refused?.takeUnless { isChoice } // which says it where it was touched
        view.tell(R.id.refused, refused?.let { context.refusalText(it, Speeds(context, actions.unit)) })
        view.see(R.id.run, isRun)
        view.see(R.id.choice, isChoice)
        view.see(R.id.list, !isRun && !isChoice && now.isExperimenter)
        when {
            isRun -> run.show(now)
            isChoice -> choice.show(now)
            else -> showList(now)
        }
        val newestPlace = now.opened ?: now.choice?.campaign
        if (place != newestPlace) view.scrollTo(0, 0)
        place = newestPlace
    }

    private fun showList(now: ExperimentState) {
        val (open, closed) = now.runs.orEmpty().partition { it.phase in OPEN || it.said != null }
        fillRuns(present, open)
        fillRuns(runs, closed)
        view.see(R.id.runs_title, closed.isNotEmpty())
        val tests = now.campaigns.orEmpty().filter { it.rangeTest == true && context.trouble(it) == null }
        ranges.fill(tests.map { it to (now.underWay == null) }) { button, (campaign, isFree) ->
            val title = context.getString(R.string.exp_range).takeIf { tests.size == 1 }
            (button as TextView).text = title ?: context.getString(R.string.exp_range_of, campaign.title)
            button.isEnabled = isFree
            button.alpha = if (isFree) 1f else FAINT
            button.setOnClickListener { actions.choose(campaign.name, begins = true) }
        }
        view.see(R.id.range_how, tests.isNotEmpty())
        view.tell(R.id.campaigns_none, context.getString(R.string.exp_none).takeIf { now.campaigns?.isEmpty() == true })
        campaigns.fill(now.campaigns.orEmpty()) { card, campaign ->
            card.findViewById<TextView>(R.id.name).text = campaign.title
            val trouble = context.trouble(campaign)
            card.findViewById<TextView>(R.id.standing).apply {
                text = trouble ?: context.getString(R.string.exp_available)
                setTextColor(context.getColor(if (trouble == null) R.color.accent else R.color.bad))
            }
            card.tell(R.id.said, null)
            card.setOnClickListener { actions.choose(campaign.name) }
        }
    }

    private fun fillRuns(cards: Cards<Run>, list: List<Run>) = cards.fill(list) { card, run ->
        card.findViewById<TextView>(R.id.name).text = run.name
        card.findViewById<TextView>(R.id.standing).text = context.standing(run)
        card.tell(R.id.said, run.said?.lineSequence()?.first())
        card.setOnClickListener { actions.open(run.name) }
    }

    private companion object {
        val OPEN = setOf("running", "paused", "failed")
    }
}

private fun Context.linkText(now: ExperimentState): String? = when {
    !now.isExperimenter -> getString(R.string.exp_how)
    now.link == ControllerLink.CONNECTING -> getString(R.string.exp_connecting)
    now.link == ControllerLink.LOST -> getString(R.string.exp_lost, now.controller?.run { "$host:$port" }.orEmpty())
    now.link == ControllerLink.WRONG_CONTROLLER -> getString(R.string.exp_wrong)
    now.link == ControllerLink.NOT_EXPERIMENTER -> getString(R.string.exp_forbidden)
    else -> null
}

/** Why something was not done; null where the link's state says it. */
internal fun Context.refusalText(e: AgentException, speeds: Speeds): String? = when (e) {
    is AgentException.Refused ->
        speeds.inWords(listOfNotNull(e.error.message.replace(FIELD, ""), e.error.cure).joinToString("\n")).unbroken()
    is AgentException.BadAnswer -> getString(R.string.exp_bad_answer)
    is AgentException.Unstored ->
        if (e.isFull) getString(R.string.exp_full) else getString(R.string.exp_unstored, e.cause?.message.orEmpty())
    is AgentException.NoKey -> getString(R.string.exp_no_key, e.message.orEmpty())
    is AgentException.TooOld ->
        getString(if (e.isStart) R.string.exp_too_old else R.string.exp_too_old_resume, e.run)
    is AgentException.Unreachable, is AgentException.WrongNode, is AgentException.NotPaired -> null
}

/** Where in a request something is wrong, which a person has not written. */
private val FIELD = Regex("""^[a-z]+(?:_[a-z]+)+: """)

/** What keeps this fleet from driving a campaign. */
internal fun Context.trouble(campaign: Campaign): String? = listOfNotNull(
    campaign.refused?.let { getString(R.string.exp_refused, it) },
    campaign.missing.takeIf { it.isNotEmpty() }?.let { getString(R.string.exp_missing, it.joinToString(", ")) },
).joinToString("\n").ifEmpty { null }

/** How a run stands, as a person reads it. */
internal fun Context.standing(run: Run): String = listOfNotNull(
    phases[run.phase]?.let(::getString) ?: run.phase,
    getString(R.string.exp_accepted, run.accepted, run.trials),
    run.givenUp.takeIf { it > 0 }?.let { getString(R.string.exp_given_up, it) },
    run.leftS?.let { getString(R.string.exp_left, duration(it)) },
).joinToString(", ")

private val phases = mapOf(
    "running" to R.string.exp_running,
    "paused" to R.string.exp_paused,
    "complete" to R.string.exp_complete,
    "ended" to R.string.exp_ended,
    "failed" to R.string.exp_failed,
)
